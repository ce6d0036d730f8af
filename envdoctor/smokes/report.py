"""Verdicts of smokes as a document, as test cases, and in every format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from envdoctor.facts import Speed
from envdoctor.report import PLAIN, Format, Look, Tested, as_json, draw, refuse
from envdoctor.report.document import (
    Block,
    Code,
    Document,
    Row,
    Rows,
    Section,
    Span,
    Table,
    Text,
    Tone,
    Words,
)
from envdoctor.report.junit import Case, draw_junit
from envdoctor.smokes.catalogue import OpEntry
from envdoctor.smokes.verdicts import BAD_OUTCOMES, Outcome, SmokeReport, SmokeResult

_SEED = re.compile(r" \(seed \d+\)$")
_NAMED = 12
_TONES: Mapping[Outcome, Tone] = {
    "passed": "ok",
    "failed": "error",
    "crashed": "error",
    "timeout": "error",
    "skipped": "dim",
}


def render(report: SmokeReport, format: Tested = Format.TEXT, look: Look = PLAIN) -> str:
    """Return the verdicts in one format."""
    match format:
        case Format.TEXT | Format.MARKDOWN | Format.HTML:
            return draw(document(report), format, look)
        case Format.JSON:
            return as_json(report.to_json())
        case Format.JUNIT:
            return draw_junit("envdoctor.smoke", map(_case, report.results))
    refuse(format)


def document(report: SmokeReport) -> Document:
    """Return a table of the verdicts, and the trouble of each below it."""
    heads = ("op", "verdict", "error", "tolerance", "first ms", "repeat ms")
    rows = tuple(_row(one) for one in report.results if one.speed is None and not _says_nothing(one))
    speeds = tuple(_speed_row(result, result.speed) for result in report.results if result.speed is not None)
    told = ", ".join(f"{count} {outcome}" for outcome, count in report.count().items())
    tone: Tone = "error" if report.exit_code == 1 else "ok" if report.count().get("passed") else "warning"
    blocks: list[Block] = [Table(heads, rows, (2, 3, 4, 5))] if rows else []
    if speeds:
        heads = ("speed", "verdict", "measured", "expected", "at least", "")
        blocks.append(Table(heads, speeds, (2, 3, 4)))
    blocks += _troubles(report.results)
    if remarks := tuple(_by_reason(report.results, "passed")):
        blocks.append(Rows(remarks))
    if skipped := tuple(_by_reason(report.results, "skipped")):
        blocks.append(Rows(skipped))
    device = f"  on {report.device}" if report.device else "  no device"
    return Document((told or "nothing was run", Span(device, "dim")), tone, tuple(blocks))


def _says_nothing(result: SmokeResult) -> bool:
    """True for what was skipped and has no figure of its own: its reason, below, is all of it."""
    return result.outcome == "skipped" and result.tolerance is None


def _row(result: SmokeResult) -> tuple[Words, ...]:
    return result.label, Span(result.outcome, _TONES[result.outcome]), *_figures(result)


def _speed_row(result: SmokeResult, speed: Speed) -> tuple[Words, ...]:
    """Return a row of a speed: slow is no more than slow, and what is held against nothing is marked."""
    word = {"pass": "passed", "slow": "slow", "unknown": "unjudged"}[speed.verdict]
    figures = (speed.figure, speed.expected, speed.least)
    told = ("" if figure is None else _digits(figure) for figure in figures)
    return (result.label, Span(word, _TONES[result.outcome]), *told, speed.unit)


def _digits(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.1f}"


def _figures(result: SmokeResult) -> tuple[str, ...]:
    scientific = (result.max_rel_error, result.tolerance)
    milliseconds = (result.first_ms, result.repeat_ms)
    return (
        *("" if value is None else f"{value:.1e}" if value else "0" for value in scientific),
        *("" if value is None else f"{value:.2f}" for value in milliseconds),
    )


def _troubles(results: Sequence[SmokeResult]) -> Iterator[Section]:
    """Yield each cause once, with the ops that met it."""
    alike: dict[tuple[str, str], list[SmokeResult]] = {}
    for result in results:
        if result.outcome in BAD_OUTCOMES:
            cause = _SEED.sub("", result.reason or "no reason given")
            alike.setdefault((result.outcome, cause), []).append(result)
    for (_, cause), some in alike.items():
        yield _trouble(cause if len(some) > 1 else some[0].reason or cause, some)


def _trouble(reason: str, some: Sequence[SmokeResult]) -> Section:
    first = some[0]
    labels = ", ".join(result.label for result in some[:_NAMED])
    more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
    title = (Span(first.outcome, _TONES[first.outcome]), "  ", Span(labels, "code"), more)
    tail: tuple[Block, ...] = (Code(first.stderr_tail),) if first.stderr_tail else ()
    return Section(title, (Text(reason), *tail), _TONES[first.outcome])


def _by_reason(results: Sequence[SmokeResult], outcome: Outcome) -> Iterator[Row]:
    """Yield each reason that is told of an outcome once, with the ops it holds for."""
    by_reason: dict[str, list[str]] = {}
    for result in results:
        if result.outcome == outcome and result.reason:
            by_reason.setdefault(result.reason, []).append(result.label)
    for reason, labels in by_reason.items():
        yield Row(outcome, f"{', '.join(labels) if len(labels) <= 12 else f'{len(labels)} ops'}: {reason}")


def list_document(ops: Sequence[OpEntry]) -> Document:
    """Return the ops with what each proves; those outside the default set are marked."""
    rows = tuple((op.name, "" if op.quick else "all", op.summary) for op in ops)
    return Document("", "", (Table(("op", "set", "proves"), rows),))


def _case(result: SmokeResult) -> Case:
    seconds = ((result.first_ms or 0) + (result.repeat_ms or 0)) / 1000
    case = Case("smoke", result.label, seconds=seconds)
    told = case._replace(message=result.reason or result.outcome, text=result.stderr_tail)
    match result.outcome:
        case "passed":
            return case
        case "skipped":
            return told._replace(outcome="skipped")
        case "crashed":
            return told._replace(outcome="error")
        case "failed" | "timeout":
            return told._replace(outcome="failure")
