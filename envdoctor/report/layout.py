"""What a person reads in ten seconds, as styled lines: plain text and colour terminals draw the same ones."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from envdoctor.findings import Certainty, Diagnosis, Finding, Outcome, Remedy, Severity
from envdoctor.report.sanitise import visible
from envdoctor.report.summary import FactRow, fact_rows, key_packages, version_words

_MARKS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "·"}
_LABEL_WIDTH = 6
_INDENT = 2


class Segment(NamedTuple):
    """A run of characters in one style: a severity's name, `ok`, `strong`, `dim`, `command` or none."""

    text: str
    style: str = ""


Line = tuple[Segment, ...]


def lay_out(diagnosis: Diagnosis, width: int = 100) -> list[Line]:
    """Return the report's lines, wrapped at `width`; commands are never broken."""
    lines: list[Line] = [*_headline(diagnosis), ()]
    depths = finding_depths(diagnosis.findings)
    for finding in diagnosis.findings:
        lines += [*_finding_lines(finding, depths[finding.id], width), ()]
    lines += [*_fact_lines(diagnosis, width), ()]
    return lines + list(_check_lines(diagnosis, width))


def one_line(text: str) -> str:
    """Return `text` harmless for a terminal and without line breaks."""
    return visible(" ".join(text.split()) if "\n" in text or "\t" in text else text)


def finding_depths(findings: tuple[Finding, ...]) -> dict[str, int]:
    """Return how many causes lie above each finding: 0 for a root cause."""
    parents = {f.id: f.consequence_of for f in findings}
    return {finding_id: _depth(finding_id, parents) for finding_id in parents}


def _depth(finding_id: str, parents: dict[str, str | None]) -> int:
    seen = {finding_id}
    parent = parents[finding_id]
    while parent in parents and parent not in seen:
        seen.add(parent)
        parent = parents[parent]
    return len(seen) - 1


def counted_severities(findings: tuple[Finding, ...]) -> str:
    """Return `2 errors, 1 warning`, or that nothing was found."""
    counts = Counter(f.severity for f in findings)
    words = [f"{n} {s.value}{'' if n == 1 else 's'}" for s in Severity if (n := counts[s])]
    return ", ".join(words) or "nothing found"


def _headline(diagnosis: Diagnosis) -> Iterator[Line]:
    counted = counted_severities(diagnosis.findings)
    worst = min((f.severity for f in diagnosis.findings), key=list(Severity).index, default=None)
    crashed = sum(check.outcome is Outcome.CRASHED for check in diagnosis.checks)
    if worst:
        yield Segment(f"{_MARKS[worst]} {counted}", worst.value), *_named_roots(diagnosis)
    else:
        passed = sum(check.outcome is Outcome.PASSED for check in diagnosis.checks)
        mark = Segment(f"! {counted}", "warning") if crashed else Segment(f"✓ {counted}", "ok")
        yield mark, Segment(f"  {passed} checks passed", "dim")
    if crashed:
        yield (
            Segment(
                f"! {crashed} check{'s' if crashed > 1 else ''} broke: the answer is not whole", "warning"
            ),
        )


def _named_roots(diagnosis: Diagnosis) -> tuple[Segment, ...]:
    depths = finding_depths(diagnosis.findings)
    causes = [f.id for f in diagnosis.findings if depths[f.id] == 0]
    if len(causes) == len(diagnosis.findings):
        return ()
    return (Segment(f"  from {len(causes)} cause{'' if len(causes) == 1 else 's'}", "dim"),)


def _finding_lines(finding: Finding, depth: int, width: int) -> Iterator[Line]:
    margin = " " * (4 * min(depth, 4))
    room = max(40, width - len(margin) - _INDENT - _LABEL_WIDTH)
    doubt = "" if finding.certainty is Certainty.CERTAIN else f"  {finding.certainty.value}"
    arrow = "└─ " if depth else ""
    yield (
        Segment(margin[3:] + arrow if depth else ""),
        Segment(f"{_MARKS[finding.severity]} {finding.severity.value}", finding.severity.value),
        Segment(f"  {one_line(finding.id)}", "strong"),
        Segment(doubt, "doubt"),
    )
    for text in textwrap.wrap(one_line(finding.summary), room + _LABEL_WIDTH, break_long_words=False):
        yield Segment(margin + " " * _INDENT), Segment(text, "strong")
    yield from _labelled("why", finding.cause, margin, room)
    for i, remedy in enumerate(finding.remedies):
        yield from _remedy_lines("do" if i == 0 else "or", remedy, margin, room)
    for i, (seen, source) in enumerate(_seen(finding)):
        yield from _seen_lines("seen" if i == 0 else "", seen, source, margin, room)
    for i, source in enumerate(finding.sources):
        yield _label("see" if i == 0 else "", margin), Segment(one_line(source), "dim")


def _seen(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield what was seen and where, the same words once; an error line stands for itself."""
    told: set[str] = set()
    for evidence in finding.evidence:
        value = one_line(evidence.value)
        if value not in told:
            told.add(value)
            name = "" if evidence.fact.startswith("SYM-") else f"{one_line(evidence.fact)} "
            yield f"{name}{value}", one_line(evidence.source)


def _seen_lines(label: str, seen: str, source: str, margin: str, room: int) -> Iterator[Line]:
    lines = textwrap.wrap(seen, room, break_long_words=False) or [""]
    for i, line in enumerate(lines):
        where = Segment(f"  ({source})" if i == len(lines) - 1 else "", "dim")
        yield _label(label if i == 0 else "", margin), Segment(line), where


def _label(label: str, margin: str) -> Segment:
    return Segment(f"{margin}{' ' * _INDENT}{label:<{_LABEL_WIDTH}}", "dim")


def _labelled(label: str, text: str, margin: str, room: int) -> Iterator[Line]:
    for i, line in enumerate(textwrap.wrap(one_line(text), room, break_long_words=False)):
        yield _label(label if i == 0 else "", margin), Segment(line)


def _remedy_lines(label: str, remedy: Remedy, margin: str, room: int) -> Iterator[Line]:
    text = remedy.text
    if label == "or" and text.startswith("Or "):
        text = text[3:4].upper() + text[4:]
    yield from _labelled(label, text, margin, room)
    for command in remedy.commands:
        for line in command.splitlines():
            yield _label("", margin), Segment("  $ ", "dim"), Segment(visible(line), "command")
    if remedy.pins and not remedy.commands:
        pins = " ".join(f"{name}{spec}" for name, spec in remedy.pins.items())
        yield _label("", margin), Segment("  " + one_line(pins), "command")


def _fact_lines(diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    rows = fact_rows(diagnosis.facts)
    packages = key_packages(diagnosis.facts)
    if packages:
        rows.append(FactRow("Packages", " · ".join(f"{d.name} {version_words(d)}" for d in packages), ""))
    label_width = max((len(row.label) for row in rows), default=0) + 2
    for row in rows:
        room = max(40, width - label_width)
        for i, text in enumerate(textwrap.wrap(one_line(row.value), room, break_long_words=False) or [""]):
            yield Segment(f"{row.label if i == 0 else '':<{label_width}}", "dim"), Segment(text)


def _check_lines(diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    counts = Counter(check.outcome for check in diagnosis.checks)
    words = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    yield (Segment(f"Checks: {words or 'none'}", "dim"),)
    for check in diagnosis.checks:
        if check.outcome is Outcome.CRASHED:
            yield (Segment(f"  {one_line(check.rule)} broke: {one_line(check.reason or '')}", "warning"),)
    reasons = Counter(c.reason for c in diagnosis.checks if c.outcome is Outcome.SKIPPED and c.reason)
    for reason, count in reasons.most_common(3):
        text = f"  {count} skipped: {one_line(reason)}"
        yield (
            Segment(textwrap.shorten(text, width, placeholder=" …") if len(text) > width else text, "dim"),
        )
    matrix = f"matrix {diagnosis.matrix_version} of {diagnosis.matrix_date}"
    yield (Segment(one_line(f"envdoctor {diagnosis.tool_version}, {matrix}"), "dim"),)
