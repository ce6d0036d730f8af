"""A document as lines of a terminal: wrapped, aligned, legible without colour."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from envdoctor.commands import prompted
from envdoctor.report.document import (
    Bar,
    Bars,
    Block,
    Code,
    Document,
    Fold,
    Row,
    Rows,
    Section,
    Span,
    Table,
    Text,
    Tone,
    Words,
    plain,
    spans,
    visible,
)

Line = list[Span]

_MARKS: dict[Tone, str] = {"error": "✗ ", "warning": "! ", "note": "· ", "ok": "✓ "}
_CELLS: dict[Tone, str] = {"": "█", "ok": "─", "error": "✗", "warning": "!", "note": "•", "dim": "?"}
_PIECES = re.compile(r" +|[^ ]+")
_GAP = "  "
_INDENT = 2
_LONGEST_LABEL = 30  # a longer one, such as a set of nodes, stands on a line of its own
_LEAST = 24  # a column of words is never narrower, however deep it stands


def draw_text(document: Document, width: int = 80) -> str:
    """Return plain text; commands, paths and sets of nodes are never broken."""
    return "".join(plain(tuple(line)).rstrip() + "\n" for line in lay_out(document, width))


def lay_out(document: Document, width: int) -> Iterator[Line]:
    """Yield the document's lines, wrapped at `width` columns."""
    if document.title:
        yield from _wrapped((Span(_MARKS.get(document.tone, ""), document.tone), *_in_tone(document)), width)
        yield from [[]] if document.blocks else []
    yield from _blocks(document.blocks, width)
    if document.foot:
        yield from ([], *_wrapped(Span(document.foot, "dim"), width))


def _in_tone(document: Document) -> Iterator[Span]:
    return (Span(span.text, span.tone or document.tone) for span in spans(document.title))


def cells(text: str) -> int:
    """Return the columns that a terminal gives to `text`."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def one_line(text: str) -> str:
    """Return `text` harmless for a terminal and without line breaks."""
    return visible(" ".join(text.split()) if "\n" in text or "\t" in text or "\r" in text else text)


def _width(line: Iterable[Span]) -> int:
    return sum(cells(span.text) for span in line)


def _atoms(words: Words) -> Iterator[tuple[str, Line]]:
    """Yield what is never broken, with the blanks before it."""
    gap, atom = "", list[Span]()
    for span in spans(words):
        for piece in _PIECES.findall(one_line(span.text)):
            if not piece.startswith(" "):
                atom.append(Span(piece.replace("\xa0", " "), span.tone))
                continue
            if atom:
                yield gap, atom
                gap, atom = "", []
            gap += piece
    if atom:
        yield gap, atom


def _wrapped(words: Words, room: int) -> list[Line]:
    lines: list[Line] = [[]]
    used = 0
    for gap, atom in _atoms(words):
        size = _width(atom)
        if lines[-1] and used + len(gap) + size > room:
            lines.append([])
            used = 0
        if lines[-1]:
            lines[-1].append(Span(gap, atom[0].tone if lines[-1][-1].tone == atom[0].tone else ""))
            used += len(gap)
        lines[-1] += atom
        used += size
    return lines


def _indented(lines: Iterable[Line], first: Line, size: int) -> Iterator[Line]:
    for number, line in enumerate(lines):
        yield [*(first if number == 0 else [Span(" " * size)]), *line] if line else []


def _block(block: Block, room: int) -> Iterator[Line]:
    match block:
        case Text(words):
            yield from _wrapped(words, room)
        case Rows(rows):
            sizes = [cells(one_line(row.label)) for row in rows]
            fitting = max((size for size in sizes if size <= _LONGEST_LABEL), default=0)
            size = max(4, fitting) + len(_GAP) if any(sizes) else len(_GAP)
            for row in rows:
                yield from _row(row, size, room)
        case Table(head, rows, numbers):
            heads = [tuple(Span(cell, "dim") for cell in head)] if any(head) else []
            yield from _table([*heads, *rows], numbers, room)
        case Bars():
            yield from _bars(block, room)
        case Code(text):
            yield from ([Span(_GAP), Span(visible(line), "code")] for line in text.splitlines())
        case Section():
            yield from _section(block, room)
        case Fold(summary):
            yield from _wrapped((summary, Span("  (--all shows them)", "dim")), room)


def _blocks(blocks: Iterable[Block], room: int) -> Iterator[Line]:
    for number, block in enumerate(blocks):
        if number:
            yield []
        yield from _block(block, room)


def _row(row: Row, size: int, room: int) -> Iterator[Line]:
    label = one_line(row.label)
    source = (Span(f"{_GAP}({row.source})", "dim"),) if row.source else ()
    lines = _wrapped((*spans(row.words), *source), max(_LEAST, room - size))
    if cells(label) > _LONGEST_LABEL:
        yield [Span(label, "dim")]
        label = ""
    yield from _indented(lines, [Span(label + " " * (size - cells(label)), "dim")], size)
    for line in "\n".join(row.commands).splitlines():
        sign, shown = prompted(visible(line)).split(" ", 1)
        yield [Span(f"{' ' * size}{sign} ", "dim"), Span(shown, "code")]


def _section(section: Section, room: int) -> Iterator[Line]:
    if not section.tone:
        yield from _wrapped((Span(plain(section.title), "strong"),), room)
        yield from _blocks(section.blocks, room)
        return
    yield from _wrapped((Span(_MARKS.get(section.tone, ""), section.tone), *spans(section.title)), room)
    inner = max(_LEAST, room - _INDENT)
    for block in section.blocks:
        if isinstance(block, Section):
            yield []
            yield from _indented(_section(block, inner - _INDENT), [Span(" └─ ", "dim")], _INDENT * 2)
        else:
            yield from _indented(_block(block, inner), [Span(" " * _INDENT)], _INDENT)


def _table(rows: Sequence[Sequence[Words]], numbers: Sequence[int], room: int) -> Iterator[Line]:
    """Lay rows out in columns; where they are too wide, the widest column is wrapped."""
    widths = [max(cells(one_line(plain(row[i]))) for row in rows) for i in range(len(rows[0]))]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - room
    if excess > 0:
        widest = widths.index(max(widths))
        widths[widest] = max(_LEAST, widths[widest] - excess)
    for row in rows:
        columns = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*columns, fillvalue=list[Span]()):
            yield _columns(parts, widths, numbers)


def _columns(parts: Sequence[Line], widths: Sequence[int], numbers: Sequence[int]) -> Line:
    line: Line = []
    for i, (part, width) in enumerate(zip(parts, widths, strict=True)):
        blank = Span(" " * (width - _width(part)))
        line += [Span(_GAP if i else ""), *([blank, *part] if i in numbers else [*part, blank])]
    return line


def _bars(chart: Bars, room: int) -> Iterator[Line]:
    labels = max(cells(one_line(bar.label)) for bar in chart.bars)
    words = min(28, max(cells(one_line(bar.words)) for bar in chart.bars))
    length = max(12, min(60, room - labels - words - 2 * len(_GAP)))
    for bar in chart.bars:
        label = one_line(bar.label)
        drawn = _drawn(bar, chart, length)
        blank = " " * (words - cells(one_line(bar.words))) if chart.figures else ""
        lines = _wrapped(bar.words, max(_LEAST, words))
        lines[0].insert(0, Span(blank))
        first = [Span(label + " " * (labels - cells(label)) + _GAP), *drawn, Span(_GAP)]
        yield from _indented(lines, first, _width(first))
    if chart.ends:
        start, end = (one_line(name) for name in chart.ends)
        yield [Span(" " * (labels + len(_GAP)) + start.ljust(length - cells(end)) + end, "dim")]


def _drawn(bar: Bar, chart: Bars, length: int) -> Line:
    tones: list[Tone | None] = [None] * length
    for run in bar.runs:
        first = min(length - 1, int(length * run.start / chart.length))
        last = max(first + 1, round(length * run.end / chart.length)) if run.end > run.start else first
        tones[first:last] = [run.tone] * (min(last, length) - first)
    drawn = [Span("·", "dim") if tone is None else Span(_CELLS.get(tone, "█"), tone) for tone in tones]
    if chart.limit is not None and chart.limit < chart.length:
        drawn[min(length - 1, int(length * chart.limit / chart.length))] = Span("|", "strong")
    return drawn
