"""The answer for a person: who is missing, who is odd and in what, what is wrong there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from envdoctor.findings import Severity
from envdoctor.fleet.answer import FleetAnswer, NodeFinding
from envdoctor.fleet.drift import Drift, DriftValue
from envdoctor.fleet.nodeset import fold
from envdoctor.fleet.report.words import counted, group_words, headline
from envdoctor.report.layout import one_line

_CODES = {"error": "1;31", "warning": "1;33", "note": "1;34", "ok": "1;32", "strong": "1", "dim": "90"}
_MARKS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "·"}
_WIDTH = 100
_SHOWN_GROUPS = 20
_SHOWN_VALUES = 12
Line = tuple[tuple[str, str], ...]


def render_text(answer: FleetAnswer, colour: bool = False) -> str:
    """Return the report, 100 columns wide; node sets and commands are never broken."""
    draw = _coloured if colour else _plain
    return "\n".join("".join(draw(*part) for part in line).rstrip() for line in _lines(answer)) + "\n"


def _set(nodes: Iterable[str]) -> str:
    return one_line(fold(nodes))


def _plain(text: str, style: str = "") -> str:
    return text


def _coloured(text: str, style: str = "") -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style else text


def _lines(answer: FleetAnswer) -> Iterator[Line]:
    mark, style = ("✗", "error") if answer.exit_code == 1 else ("✓", "ok")
    yield ((f"{mark} {headline(answer)}", style),)
    yield ()
    for one in answer.unreached:
        yield ("✗ unreached", "error"), (f"  {_set(one.nodes)}", "strong"), (f"  {one_line(one.reason)}", "")
    if answer.unreached:
        yield ()
    for drift in answer.drift:
        yield from (*_drift_lines(drift), ())
    for finding in answer.findings:
        yield from (*_finding_lines(finding), ())
    yield from _comparison_lines(answer)
    yield from _extra_lines(answer)
    yield from _group_lines(answer)
    for rule, reason in answer.crashed_checks.items():
        yield ((f"! {one_line(rule)} broke: {one_line(reason)}", "warning"),)
    version = f"envdoctor {answer.tool_version}, matrix {answer.matrix_version} of {answer.matrix_date}"
    yield ((one_line(version), "dim"),)


def _drift_lines(drift: Drift) -> Iterator[Line]:
    indent = "    " if drift.consequence_of else ""
    follows = f"  follows from {drift.consequence_of}" if drift.consequence_of else ""
    accepted = "  accepted" if drift.accepted else ""
    yield (
        (indent, ""),
        (f"{_MARKS[drift.severity]} {drift.severity.value}", drift.severity.value),
        (f"  {one_line(drift.fact)} differs", "strong"),
        (one_line(follows + accepted), "dim"),
    )
    for text in textwrap.wrap(drift.row.why, _WIDTH - 10):
        yield ((f"{indent}  {text}", "dim"),)
    width = min(40, max(len(_value_words(value)) for value in drift.values))
    for position, value in enumerate(drift.values[:_SHOWN_VALUES]):
        arrow = "  " if position == 0 else "→ "
        yield (
            (f"{indent}  {arrow}{_value_words(value):<{width}}", "strong" if position else ""),
            (f"  {_set(value.nodes)}", "strong" if position else ""),
            (f"  ({len(value.nodes)})", "dim"),
        )
    if len(drift.values) > _SHOWN_VALUES:
        yield ((f"{indent}    and {len(drift.values) - _SHOWN_VALUES} more values", "dim"),)


def _value_words(value: DriftValue) -> str:
    return f"unknown: {one_line(value.reason)}" if value.value is None else one_line(value.value)


def _finding_lines(one: NodeFinding) -> Iterator[Line]:
    finding = one.finding
    yield (
        (f"{_MARKS[finding.severity]} {finding.severity.value}", finding.severity.value),
        (f"  {one_line(finding.id)}", "strong"),
        (f"  {_set(one.nodes)}", "strong"),
        (f"  ({len(one.nodes)})", "dim"),
    )
    yield from _wrapped(finding.summary, "  ", "strong")
    yield from _wrapped(finding.cause, "  why   ")
    for position, remedy in enumerate(finding.remedies):
        yield from _wrapped(remedy.text, "  or    " if position else "  do    ")
        for command in remedy.commands:
            yield ((f"          $ {one_line(command)}", ""),)


def _wrapped(text: str, label: str, style: str = "") -> Iterator[Line]:
    lines = textwrap.wrap(one_line(text), _WIDTH - len(label), break_long_words=False)
    for position, line in enumerate(lines):
        yield (label if position == 0 else " " * len(label), "dim"), (line, style)


def _comparison_lines(answer: FleetAnswer) -> Iterator[Line]:
    comparison = answer.comparison
    if comparison is None:
        return
    changed = counted(len(comparison.changes), "change")
    yield ((f"Against {one_line(comparison.file)}: {changed}", "strong"),)
    for change in comparison.changes:
        was, now = (one_line("unknown" if v is None else v) for v in (change.was, change.now))
        yield (
            (f"  {_MARKS[change.severity]} {one_line(change.fact)}: ", change.severity.value),
            (f"{was} → {now}", ""),
            (f"  {_set(change.nodes)}", "strong"),
        )
    yield from _named_nodes("gone since then", comparison.missing)
    yield from _named_nodes("new since then", comparison.new)
    yield ()


def _named_nodes(label: str, nodes: Iterable[str]) -> Iterator[Line]:
    if folded := _set(nodes):
        yield ((f"  {label}: {folded}", ""),)


def _extra_lines(answer: FleetAnswer) -> Iterator[Line]:
    collective = answer.collective
    if collective is not None:
        style = (
            "ok" if collective.outcome == "passed" else "error" if collective.outcome == "failed" else "dim"
        )
        reason = f": {one_line(collective.reason)}" if collective.reason else ""
        ranks = counted(collective.ranks, "rank")
        yield ((f"all-reduce over {ranks}: {collective.outcome}{reason}", style),)
        yield ()
    for label, told in (("pins", answer.pins), ("profile", answer.profile)):
        if told is not None:
            yield from _wrapped(str(told.get("told", "")), f"{label}  ", "strong")
            yield ()


def _group_lines(answer: FleetAnswer) -> Iterator[Line]:
    for group in answer.groups[:_SHOWN_GROUPS]:
        yield (
            (_set(group.nodes), "strong"),
            (f"  ({len(group.nodes)})  ", "dim"),
            (one_line(group_words(group)), ""),
        )
    if len(answer.groups) > _SHOWN_GROUPS:
        yield ((f"and {len(answer.groups) - _SHOWN_GROUPS} more kinds of nodes", "dim"),)
    if answer.groups:
        yield ()
