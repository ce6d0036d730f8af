"""A conflict, and what forbids a version, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envdoctor.facts.quantities import counted
from envdoctor.report import PLAIN, Format, Look, Reported, told
from envdoctor.report.document import Block, Document, Row, Rows, Section, Text
from envdoctor.solve.answer import UNKNOWN, Cause, Line, PinSet, Relaxation

if TYPE_CHECKING:
    from envdoctor.solve.pinning import WhyNot

SHOWN = 8
"""So many versions of what was asked for are named for one way out."""


def render(answer: WhyNot, format: Reported = Format.TEXT, look: Look = PLAIN) -> str:
    """Return what forbids a request in one format."""
    return told(format, look, lambda: forbidden_document(answer), answer.as_json)


def forbidden_document(answer: WhyNot) -> Document:
    """Return the causes, or that there are none."""
    if answer.forbidden is None:
        blocks = (Text(UNKNOWN), causes(answer.causes)) if answer.causes else map(Text, answer.notes)
        return Document("not known", "warning", tuple(blocks))
    if not answer.causes:
        return Document("nothing forbids it", "", tuple(Text(note) for note in answer.notes))
    verb = "forbids" if len(answer.causes) == 1 else "forbid"
    return Document(f"{counted(len(answer.causes), 'cause')} {verb} it", "error", (causes(answer.causes),))


def conflict_document(answer: PinSet) -> Document:
    """Return a conflict: the causes, and what giving each up would give."""
    blocks: list[Block] = [causes(answer.causes)]
    for one in answer.also:
        if more := [cause for cause in one if cause not in answer.causes]:
            blocks.append(Section("Apart from that", (causes(more),)))
    if answer.lines:
        rows = (_line(one) for one in answer.lines)
        blocks.append(Section("The smallest change of what is asked for", (Rows(tuple(rows)),)))
    if answer.relaxations:
        blocks.append(Section("Ways out", (Rows(tuple(map(_relaxed, answer.relaxations))),)))
    blocks += [Text(f"Note: {note}") for note in answer.notes]
    if answer.status == "unknown":
        return Document("not known", "warning", (Text(UNKNOWN), *blocks))
    return Document("no environment satisfies all of these together", "error", tuple(blocks))


def _line(one: Line) -> Row:
    if one.new:
        return Row("change", f"{one.old} to {one.new}", one.source)
    return Row("leave out", f"{one.old}, which comes with torch", one.source)


def _relaxed(one: Relaxation) -> Row:
    given = [f"{name} {version}" for name, version in one.gives.items()]
    more = f" and {len(given) - SHOWN} more" if len(given) > SHOWN else ""
    return Row("without", f"{one.drop}: {', '.join(given[:SHOWN])}{more}")


def causes(found: Sequence[Cause]) -> Rows:
    """Return each cause with its source."""
    return Rows(tuple(Row(cause.kind, cause.text, cause.source) for cause in found))
