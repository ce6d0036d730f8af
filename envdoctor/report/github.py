"""A diagnosis as GitHub's workflow commands: annotations on the lines that evidence names."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor.commands import prompted
from envdoctor.findings import Certainty, Diagnosis, Finding, Outcome, Severity
from envdoctor.report.document import severities, visible
from envdoctor.report.places import place_of

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
# GitHub shows ten annotations of a kind for a step.
_SHOWN_OF_A_KIND = 10


def draw_github(diagnosis: Diagnosis) -> str:
    """Return one annotation a finding, at most ten of a kind, and a closing line in plain words."""
    lines: list[str] = []
    for severity in Severity:
        findings = [f for f in diagnosis.findings if f.severity is severity]
        lines += [_annotation(f, diagnosis.examined.files) for f in findings[:_SHOWN_OF_A_KIND]]
    left_out = len(diagnosis.findings) - len(lines)
    for check in diagnosis.checks:
        if check.outcome is Outcome.CRASHED:
            lines.append(f"::error title=envdoctor::{_data(f'check {check.rule} broke: {check.reason}')}")
    more = f" ({left_out} more in the report)" if left_out else ""
    return "\n".join([*lines, f"envdoctor: {severities(diagnosis.findings)}{more}"]) + "\n"


def _annotation(finding: Finding, files: Sequence[str]) -> str:
    place = place_of(finding, files)
    where = f",file={_property(place.file)},line={place.line}" if place else ""
    doubt = "" if finding.certainty is Certainty.CERTAIN else f" ({finding.certainty.value})"
    words = [finding.summary + doubt, finding.cause]
    for remedy in finding.remedies[:1]:
        words += [remedy.text, *map(prompted, remedy.commands)]
    title = _property(" ".join(finding.id.split()))
    return f"::{_COMMANDS[finding.severity]} title={title}{where}::{_data(chr(10).join(words))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
