"""The answer as test cases: a fact that must agree, a node that must answer, a finding."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.findings import Severity
from envdoctor.fleet.answer import Collective, FleetAnswer
from envdoctor.fleet.differing import Drift
from envdoctor.fleet.nodeset import fold
from envdoctor.report.cases import finding_case
from envdoctor.report.junit import Case


def cases(answer: FleetAnswer) -> Iterator[Case]:
    """Yield a case for each kind of node, drifting fact, finding, change and broken check."""
    yield from (Case("fleet.reached", fold(group.nodes)) for group in answer.groups)
    yield from (_failed("reached", fold(one.nodes), "unreached", one.reason) for one in answer.unreached)
    drift = [d for d in answer.drift if not d.accepted]
    yield from map(_drift, drift)
    if not drift:
        yield Case("fleet.drift", "all facts agree")
    for one in answer.findings:
        yield finding_case("fleet.finding", one.finding.id, [one.finding], f"{fold(one.nodes)}: ")
    yield from _compared(answer)
    if answer.collective is not None:
        yield _collective(answer.collective)
    for rule, reason in answer.crashed_checks.items():
        yield Case("fleet.check", rule, "error", reason, kind="crashed")


def _failed(family: str, name: str, kind: str, message: str, text: str = "") -> Case:
    return Case(f"fleet.{family}", name, "failure", message, text or message, kind)


def _collective(collective: Collective) -> Case:
    reason = collective.reason or ""
    if collective.outcome == "failed":
        return _failed("smoke", "all-reduce", "failed", reason)
    if collective.outcome == "skipped":
        return Case("fleet.smoke", "all-reduce", "skipped", reason)
    return Case("fleet.smoke", "all-reduce")


def _drift(drift: Drift) -> Case:
    words = "; ".join(f"{v.value or f'unknown: {v.reason}'} on {fold(v.nodes)}" for v in drift.values)
    if drift.severity is Severity.NOTE:
        return Case("fleet.drift", drift.fact, text=words)
    return _failed("drift", drift.fact, drift.severity.value, words, drift.row.why)


def _compared(answer: FleetAnswer) -> Iterator[Case]:
    if answer.comparison is None:
        return
    for change in answer.comparison.changes:
        words = f"{change.was or 'unknown'} became {change.now or 'unknown'} on {fold(change.nodes)}"
        yield _failed("baseline", change.fact, change.severity.value, words)
    if answer.comparison.missing:
        yield _failed("baseline", "nodes", "missing", f"gone: {fold(answer.comparison.missing)}")
