"""The answer of `upgrade` as a document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envdoctor.facts.quantities import counted
from envdoctor.report import PLAIN, Format, Look, Reported, told
from envdoctor.report.document import Block, Document, Row, Rows, Section, Text, Tone
from envdoctor.solve.report import causes
from envdoctor.upgrading.findings import place_of
from envdoctor.upgrading.upgrading import Found, Upgrade
from envdoctor.upgrading.uses import Kind


def render(answer: Upgrade, format: Reported = Format.TEXT, look: Look = PLAIN) -> str:
    """Return the answer in one format."""
    return told(format, look, lambda: upgrade_document(answer), answer.as_json)


def upgrade_document(answer: Upgrade) -> Document:
    """Return what breaks, then the set to install, then what was not followed."""
    judged = answer.judged
    lines = len({place_of(found) for found in judged.failing})
    title = f"{counted(lines, 'line')} of {counted(judged.files, 'file')} would break"
    if not judged.files:
        title = "the set to install"
    elif not judged.failing:
        title = f"nothing that was read in {counted(judged.files, 'file')} breaks"
    tone: Tone = "error" if judged.failing or answer.pins.status == "conflict" else "ok"
    return Document(title, tone, (*_breaks(judged.breaks), *_set(answer), *_unread(answer)))


def _breaks(found: list[Found]) -> Iterator[Block]:
    if found:
        rows = (Row(place_of(one), _words(one)) for one in found)
        yield Rows(tuple(rows))


def _words(found: Found) -> str:
    told = found.told
    if told.use.kind is Kind.REQUIREMENT:
        return f"{told.name} leaves out {told.since}"
    if told.use.kind is Kind.VARIABLE:
        return f"{told.name} is no longer read since {told.since}"
    instead = f"; instead: {told.replacement}" if told.replacement else ""
    doubt = f" ({told.certainty.value})" if told.certainty.value != "certain" else ""
    warned = f"warns and goes with {told.since}" if told.since else "is still taken and warns"
    gone = warned if told.warned else f"is gone since {told.since}"
    return f"{told.name} {gone}{instead}{doubt}"


def _set(answer: Upgrade) -> Iterator[Block]:
    pins = answer.pins
    if pins.status == "solved":
        changed = {change.name: change.old for change in pins.changes}
        asked = {re.split(r"[^\w.-]", word)[0] for word in pins.asked}
        shown = [pin for pin in pins.pins if pin.name in changed or pin.name in asked]
        rows = (
            Row(pin.name, f"{changed[pin.name]} to {pin.version}" if pin.name in changed else pin.version)
            for pin in shown
        )
        kept = len(pins.pins) - len(shown)
        more = (Text(f"{counted(kept, 'other package')} as they are or as these require."),) if kept else ()
        yield Section("The set to install, with the fewest changes", (Rows(tuple(rows)), *more))
    else:
        yield Section("No set satisfies all of these", (causes(pins.causes),), "error")


def _unread(answer: Upgrade) -> Iterator[Block]:
    judged = answer.judged
    if judged.unfollowed:
        yield Text(f"Not followed: {counted(judged.unfollowed, 'use')} that only a run would tell.")
    if judged.unread:
        yield Text(f"Not read: {', '.join(judged.unread[:20])}.")
