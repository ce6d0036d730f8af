"""A diagnosis as JUnit XML: one test case for each check."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter

from envdoctor.findings import CheckResult, Diagnosis, Finding, Outcome
from envdoctor.report.sanitise import visible

_NOT_XML = re.compile("[\ufffe\uffff]")


def render_junit(diagnosis: Diagnosis) -> str:
    """Return a suite whose failures are the findings of failed checks and whose errors are broken checks."""
    cases = [_case(check, diagnosis.findings) for check in diagnosis.checks]
    checked = {check.rule for check in diagnosis.checks}
    cases += [_failed(f.id, (f,), 0.0) for f in diagnosis.findings if _check_of(f, checked) is None]
    kinds = Counter(child.tag for case in cases for child in case)
    suite = ET.Element(
        "testsuite",
        name="envdoctor",
        tests=str(len(cases)),
        failures=str(kinds["failure"]),
        errors=str(kinds["error"]),
        skipped=str(kinds["skipped"]),
        time=f"{sum(check.duration_ms for check in diagnosis.checks) / 1000:.3f}",
    )
    suite.extend(cases)
    root = ET.Element("testsuites", name="envdoctor")
    root.append(suite)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _check_of(finding: Finding, checked: set[str]) -> str | None:
    return next((rule for rule in checked if finding.id == rule or finding.id.startswith(f"{rule}-")), None)


def _case(check: CheckResult, findings: tuple[Finding, ...]) -> ET.Element:
    if check.outcome is Outcome.FAILED:
        own = tuple(f for f in findings if _check_of(f, {check.rule}))
        if own:
            return _failed(check.rule, own, check.duration_ms)
    case = _named_case(check.rule, check.duration_ms)
    if check.outcome is Outcome.FAILED:
        ET.SubElement(case, "skipped", message="a likelier cause was found")
    elif check.outcome is Outcome.CRASHED:
        ET.SubElement(case, "error", type="crashed", message=_clean(check.reason or "the check broke"))
    elif check.outcome is Outcome.SKIPPED:
        ET.SubElement(case, "skipped", message=_clean(check.reason or "too little is known"))
    return case


def _failed(rule: str, findings: tuple[Finding, ...], duration_ms: float) -> ET.Element:
    case = _named_case(rule, duration_ms)
    failure = ET.SubElement(case, "failure", type=findings[0].severity.value)
    failure.set("message", _clean(findings[0].summary))
    failure.text = _clean("\n\n".join(_finding_text(f) for f in findings))
    return case


def _named_case(rule: str, duration_ms: float) -> ET.Element:
    family = rule.partition("-")[0].lower()
    seconds = f"{duration_ms / 1000:.3f}"
    return ET.Element("testcase", name=_clean(rule), classname=f"envdoctor.{_clean(family)}", time=seconds)


def _finding_text(finding: Finding) -> str:
    seen = "".join(f"\nseen: {e.fact} {e.value} ({e.source})" for e in finding.evidence)
    remedies = "".join(
        f"\ndo: {r.text}" + "".join(f"\n  $ {c}" for c in r.commands) for r in finding.remedies
    )
    return f"{finding.summary}\n{finding.cause}{seen}{remedies}"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))
