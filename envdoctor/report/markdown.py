"""A document as Markdown that can be pasted into an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envdoctor.report.document import (
    Bars,
    Block,
    Code,
    Document,
    Fold,
    Row,
    Rows,
    Section,
    Table,
    Text,
    Words,
    plain,
    spans,
)
from envdoctor.report.markup import code, commands_block, details, fenced, prose, table


def draw_markdown(document: Document) -> str:
    """Return the whole report; nothing that was said acts on GitHub."""
    foot = f"\n{prose(document.foot)}\n" if document.foot else ""
    title = f"# envdoctor: {inline(document.title)}\n\n" if document.title else ""
    return f"{title}{draw_blocks(document.blocks)}{foot}"


def draw_blocks(blocks: Iterable[Block], level: int = 2) -> str:
    """Return blocks one below the other; sections have headings of `level`."""
    return "\n".join(_block(block, level) for block in blocks)


def inline(words: Words) -> str:
    """Return a text on one line."""
    parts = []
    for span in spans(words):
        inner = code(span.text.strip()) if span.tone == "code" else prose(span.text)
        before, after = (" " if edge.isspace() else "" for edge in (span.text[:1], span.text[-1:]))
        parts.append(f"{before}{inner}{after}" if span.text.strip() else before)
    return re.sub(" +", " ", "".join(parts)).strip()


def _block(block: Block, level: int) -> str:
    match block:
        case Text(words):
            return f"{inline(words)}\n"
        case Rows(rows):
            return _rows(rows)
        case Table(head, rows):
            return table(head, [tuple(inline(cell) for cell in row) for row in rows])
        case Bars():
            from envdoctor.report.text import lay_out

            lines = (plain(tuple(line)).rstrip() for line in lay_out(Document("", "", (block,)), 80))
            return fenced("\n".join(lines).strip("\n"), "text")
        case Code(text, language):
            return fenced(text, language)
        case Section(title, blocks, tone):
            heading = "#" * min(level + bool(tone), 6)
            return f"{heading} {inline(title)}\n\n{draw_blocks(blocks, level + 1)}"
        case Fold(summary, blocks):
            return details(prose(summary), draw_blocks(blocks, level))


def _rows(rows: tuple[Row, ...]) -> str:
    """Return a table where every row is a label and its value, else a list."""
    if not any(row.commands or not row.label for row in rows):
        sourced = any(row.source for row in rows)
        lines = [(prose(r.label), inline(r.words), prose(r.source))[: 2 + sourced] for r in rows]
        return table(("", "", "read from")[: 2 + sourced], lines)
    return "".join(_item(row) for row in rows)


def _item(row: Row) -> str:
    label = f"**{prose(row.label)}** " if row.label else ""
    source = f" ({prose(row.source)})" if row.source else ""
    commands = commands_block(row.commands)
    return f"- {label}{inline(row.words)}{source}\n" + (f"\n{commands}\n" if commands else "")
