"""Verdicts as text with aligned columns, and as JUnit."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from envdoctor.report.sanitise import visible
from envdoctor.smokes.catalogue import OpEntry
from envdoctor.smokes.verdicts import SmokeReport, SmokeResult

_COLOURS = {"passed": "32", "failed": "31", "crashed": "31", "timeout": "31", "skipped": "33"}


def render_text(report: SmokeReport, *, colour: bool) -> str:
    """Return a table of the verdicts, the trouble of each below it, and the count."""
    heads = ("op", "verdict", "error", "tolerance", "first ms", "repeat ms")
    rows = [(r.label, r.outcome, *_figures(r)) for r in report.results]
    lines = _aligned([heads, *rows], numbers_from=2)
    if colour:
        verdicts = [""] + [row[1] for row in rows]
        lines = [_coloured(line, verdict) for line, verdict in zip(lines, verdicts, strict=True)]
    notes = [note for result in report.results for note in _notes(result)] + _skips(report.results)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in report.count().items())
    parts = [f"device: {visible(report.device or 'none')}", "", *lines, "", *notes, counted]
    return "\n".join(parts)


def _figures(result: SmokeResult) -> tuple[str, ...]:
    scientific = (result.max_rel_error, result.tolerance)
    milliseconds = (result.first_ms, result.repeat_ms)
    return (
        *("" if value is None else f"{value:.1e}" if value else "0" for value in scientific),
        *("" if value is None else f"{value:.2f}" for value in milliseconds),
    )


def _aligned(rows: Sequence[tuple[str, ...]], numbers_from: int) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(_padded(cell, width, i >= numbers_from) for i, (cell, width) in
            enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]  # fmt: skip


def _padded(cell: str, width: int, to_the_right: bool) -> str:
    return cell.rjust(width) if to_the_right else cell.ljust(width)


def _coloured(line: str, verdict: str) -> str:
    code = _COLOURS.get(verdict)
    return line.replace(f"  {verdict}", f"  \x1b[{code}m{verdict}\x1b[0m", 1) if code else line


def _notes(result: SmokeResult) -> list[str]:
    if not result.reason or result.outcome == "skipped":
        return []
    tail = [f"    {visible(line)}" for line in result.stderr_tail.splitlines()]
    return [f"{result.label} {result.outcome}: {visible(result.reason)}", *tail]


def _skips(results: Sequence[SmokeResult]) -> list[str]:
    """Return each reason for skipping once, with the ops it holds for."""
    by_reason: dict[str, list[str]] = {}
    for result in results:
        if result.outcome == "skipped":
            by_reason.setdefault(result.reason or "", []).append(result.label)
    return [f"{_in_short(labels)} skipped: {visible(reason)}" for reason, labels in by_reason.items()]


def _in_short(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= 12 else f"{len(labels)} ops"


def render_list(ops: Sequence[OpEntry]) -> str:
    """Return the ops with what each proves; those outside the default set are marked."""
    rows = [("op", "set", "proves"), *((op.name, "" if op.quick else "all", op.summary) for op in ops)]
    return "\n".join(_aligned(rows, numbers_from=len(rows[0])))


def render_junit(report: SmokeReport) -> str:
    """Return JUnit XML: failed and timeout are failures, crashed an error."""
    counts = report.count()
    failures = counts.get("failed", 0) + counts.get("timeout", 0)
    totals = {"tests": len(report.results), "failures": failures}
    totals |= {"errors": counts.get("crashed", 0), "skipped": counts.get("skipped", 0)}
    attributes = {name: str(total) for name, total in totals.items()}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "envdoctor.smoke", **attributes})
    for result in report.results:
        seconds = ((result.first_ms or 0) + (result.repeat_ms or 0)) / 1000
        case = {"classname": "envdoctor.smoke", "name": result.label, "time": f"{seconds:.6f}"}
        _add_verdict(ElementTree.SubElement(suite, "testcase", case), result)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _add_verdict(case: ElementTree.Element, result: SmokeResult) -> None:
    tag = {"failed": "failure", "timeout": "failure", "crashed": "error", "skipped": "skipped"}.get(
        result.outcome
    )
    if tag:
        message = {"message": visible(result.reason or result.outcome)}
        ElementTree.SubElement(case, tag, message).text = visible(result.stderr_tail)
