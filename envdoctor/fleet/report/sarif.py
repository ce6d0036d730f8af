"""The answer as SARIF: findings, root differences, and nodes that gave nothing or not all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from envdoctor.facts import Facts
from envdoctor.findings import Diagnosis, Evidence, Examined, Finding, Severity
from envdoctor.fleet.answer import FleetAnswer
from envdoctor.fleet.differing import Drift
from envdoctor.fleet.nodeset import fold
from envdoctor.report.sarif import draw_sarif


def draw_fleet_sarif(answer: FleetAnswer) -> str:
    """Return one run with a result for each entry."""
    return draw_sarif(
        Diagnosis(
            facts=Facts(),
            checks=(),
            findings=tuple(_entries(answer)),
            exit_code=answer.exit_code,
            tool_version=answer.tool_version,
            matrix_version=answer.matrix_version,
            matrix_date=answer.matrix_date,
            examined=Examined("a fleet"),
        )
    )


def _entries(answer: FleetAnswer) -> Iterator[Finding]:
    for lost in answer.unreached:
        yield _missing("FLEET-UNREACHED", "no answer", lost.reason, fold(lost.nodes))
    for part in answer.partial:
        yield _missing("FLEET-PARTIAL", part.part, part.reason, fold(part.nodes))
    for one in answer.findings:
        where = fold(one.nodes)
        evidence = (Evidence("nodes", where, "fleet"), *one.finding.evidence)
        yield replace(one.finding, summary=f"{where}: {one.finding.summary}", evidence=evidence)
    yield from (_of_drift(d) for d in answer.drift if d.consequence_of is None and not d.accepted)


def _missing(name: str, what: str, reason: str, nodes: str) -> Finding:
    evidence = (Evidence("nodes", nodes, "fleet"), Evidence(what, "not known", reason))
    return Finding(name, Severity.ERROR, f"{nodes}: {what}", reason, evidence)


def _of_drift(drift: Drift) -> Finding:
    values = [
        (v.value if v.value is not None else f"unknown: {v.reason}", fold(v.nodes)) for v in drift.values
    ]
    words = "; ".join(f"{value} on {nodes}" for value, nodes in values)
    return Finding(
        id=drift.row.id,
        severity=drift.severity,
        summary=f"{drift.fact} differs: {words}",
        cause=drift.row.why,
        evidence=tuple(Evidence(drift.fact, value, nodes) for value, nodes in reversed(values)),
        rows=(drift.row.id,),
        sources=(drift.row.source,),
    )
