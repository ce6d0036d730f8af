"""The answer as JUnit XML: one test case a fact that must agree, a node that must answer, a finding."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

from envdoctor.fleet.answer import Comparison, FleetAnswer, NodeFinding
from envdoctor.fleet.drift import Drift
from envdoctor.fleet.nodeset import fold
from envdoctor.report.sanitise import visible

_NOT_XML = re.compile("[\ufffe\uffff]")


def render_junit(answer: FleetAnswer) -> str:
    """Return a suite whose failures are drift, findings and unreached nodes; broken checks are its errors."""
    cases = list(_cases(answer))
    kinds = Counter(child.tag for case in cases for child in case)
    counts = {"tests": len(cases), "failures": kinds["failure"], "errors": kinds["error"]}
    suite = ET.Element("testsuite", name="envdoctor fleet", skipped=str(kinds["skipped"]))
    for name, number in counts.items():
        suite.set(name, str(number))
    suite.extend(cases)
    root = ET.Element("testsuites", name="envdoctor")
    root.append(suite)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _cases(answer: FleetAnswer) -> Iterator[ET.Element]:
    for group in answer.groups:
        yield _case("reached", fold(group.nodes))
    for one in answer.unreached:
        yield _failed("reached", fold(one.nodes), "unreached", one.reason)
    drift = [d for d in answer.drift if not d.accepted]
    for each in drift:
        yield _failed("drift", each.fact, each.severity.value, _drift_words(each), each.row.why)
    if not drift:
        yield _case("drift", "all facts agree")
    yield from (_finding_case(finding) for finding in answer.findings)
    if answer.comparison is not None:
        yield from _comparison_cases(answer.comparison)
    if answer.collective is not None:
        yield _collective_case(answer.collective.outcome, answer.collective.reason or "")
    for rule, reason in answer.crashed_checks.items():
        case = _case("check", rule)
        ET.SubElement(case, "error", type="crashed", message=_clean(reason))
        yield case


def _case(family: str, name: str) -> ET.Element:
    return ET.Element("testcase", classname=f"envdoctor.fleet.{family}", name=_clean(name), time="0")


def _failed(family: str, name: str, kind: str, message: str, text: str = "") -> ET.Element:
    case = _case(family, name)
    failure = ET.SubElement(case, "failure", type=kind, message=_clean(message))
    failure.text = _clean(text or message)
    return case


def _drift_words(drift: Drift) -> str:
    return "; ".join(f"{v.value or f'unknown: {v.reason}'} on {fold(v.nodes)}" for v in drift.values)


def _finding_case(one: NodeFinding) -> ET.Element:
    finding = one.finding
    text = finding.cause
    for remedy in finding.remedies:
        text += f"\ndo: {remedy.text}" + "".join(f"\n  $ {command}" for command in remedy.commands)
    return _failed(
        "finding", finding.id, finding.severity.value, f"{fold(one.nodes)}: {finding.summary}", text
    )


def _comparison_cases(comparison: Comparison) -> Iterator[ET.Element]:
    for change in comparison.changes:
        words = f"{change.was or 'unknown'} became {change.now or 'unknown'} on {fold(change.nodes)}"
        yield _failed("baseline", change.fact, change.severity.value, words)
    if comparison.missing:
        yield _failed("baseline", "nodes", "missing", f"gone: {fold(comparison.missing)}")


def _collective_case(outcome: str, reason: str) -> ET.Element:
    if outcome == "failed":
        return _failed("smoke", "all-reduce", "failed", reason)
    case = _case("smoke", "all-reduce")
    if outcome == "skipped":
        ET.SubElement(case, "skipped", message=_clean(reason))
    return case


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))
