"""A diagnosis as GitHub's workflow commands: annotations on the lines that evidence names."""

from __future__ import annotations

from envdoctor.findings import Certainty, Diagnosis, Finding, Outcome, Severity
from envdoctor.report.layout import counted_severities, one_line
from envdoctor.report.places import file_and_line
from envdoctor.report.sanitise import visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
# GitHub shows ten annotations of a kind for a step.
_SHOWN_OF_A_KIND = 10


def render_github(diagnosis: Diagnosis) -> str:
    """Return one annotation a finding, at most ten of a kind, and a closing line in plain words."""
    lines: list[str] = []
    left_out = 0
    for severity in Severity:
        findings = [f for f in diagnosis.findings if f.severity is severity]
        lines += [_annotation(f) for f in findings[:_SHOWN_OF_A_KIND]]
        left_out += max(0, len(findings) - _SHOWN_OF_A_KIND)
    for check in diagnosis.checks:
        if check.outcome is Outcome.CRASHED:
            lines.append(f"::error title=envdoctor::{_data(f'check {check.rule} broke: {check.reason}')}")
    more = f" ({left_out} more in the report)" if left_out else ""
    lines.append(f"envdoctor: {counted_severities(diagnosis.findings)}{more}")
    return "\n".join(lines) + "\n"


def _annotation(finding: Finding) -> str:
    place = file_and_line(finding.evidence)
    where = f",file={_property(place[0])},line={place[1]}" if place else ""
    doubt = "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty.value})"
    remedy = finding.remedies[0] if finding.remedies else None
    words = [finding.summary + doubt, finding.cause]
    if remedy:
        words += [remedy.text, *(f"$ {command}" for command in remedy.commands)]
    title = _property(one_line(finding.id))
    return f"::{_COMMANDS[finding.severity]} title={title}{where}::{_data(chr(10).join(words))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
