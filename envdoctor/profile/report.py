"""A profile as a document: the choice, its memory against the card, what was rejected, the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envdoctor.memory.report import gib, peak_bars
from envdoctor.profile.choosing import SPEED_NOTE, Profile
from envdoctor.profile.search import Found
from envdoctor.report import PLAIN, Look, Reported, told
from envdoctor.report.document import Block, Code, Document, Row, Rows, Section, Span, Table, Text

_KIND = {"yaml": "yaml", "yml": "yaml", "json": "json", "sh": "sh", "py": "python"}


def render(profile: Profile, format: Reported, look: Look = PLAIN) -> str:
    """Return a profile in one format."""
    return told(format, look, lambda: document(profile), profile.to_json)


def document(profile: Profile) -> Document:
    """Return the answer; a rejected setting is told by what it changes."""
    found, work = profile.found, profile.found.work
    title = f"{work.model or work.shape.name} on {len(work.cards)} × {work.card.name}, {work.task}"
    blocks = [*_chosen(found), *(Text(f"Note: {note}") for note in found.notes), *_validated(profile)]
    if found.rejected:
        blocks.append(Section("Rejected", (_rejected(found), Text(Span(SPEED_NOTE, "dim")))))
    blocks += [
        Section(Span(name, "code"), (Code(text.rstrip("\n"), _KIND.get(name.rpartition(".")[2], "")),))
        for name, text in profile.files.items()
    ]
    if found.choice is None:
        return Document(f"{title}: nothing fits", "error", tuple(blocks))
    return Document(title, "ok", tuple(blocks))


def _chosen(found: Found) -> Iterator[Block]:
    if found.choice is None:
        return
    told = {key: value for key, value in found.choice.to_json().items() if value not in (False, "")}
    yield Text(_settings(told))
    if found.need is not None:
        need, room = found.need.device_bytes, found.work.room
        yield Text(f"Needs at most {gib(need)} of {gib(room)} ({need / room:.0%}).")
        yield peak_bars(found.need.prediction, room)


def _settings(told: Mapping[str, Any]) -> str:
    """Return settings in a line; a setting is not parted from its value."""
    shown = {
        key: "on" if value is True else "off" if value is False else value for key, value in told.items()
    }
    return ", ".join(f"{key}\xa0{value}" for key, value in shown.items())


def _rejected(found: Found) -> Table:
    chosen = found.choice.to_json() if found.choice else {}
    rows = []
    for item in (rejection.to_json() for rejection in found.rejected):
        changed = {key: value for key, value in item["choice"].items() if chosen.get(key) != value}
        speed = f"{item['relative_speed']}×" if "relative_speed" in item else ""
        rows.append((_settings(changed or item["choice"]), item["why"], speed))
    return Table(("setting", "why not", "speed"), tuple(rows), (2,))


def _validated(profile: Profile) -> Iterator[Block]:
    told = profile.validated
    if told.get("status") == "measured":
        measured, predicted = told["measured_reserved_bytes"], told["predicted_reserved_bytes"]
        yield Rows((Row("measured", f"{gib(measured)} reserved, {gib(predicted)} predicted at most"),))
    yield from (Text(f"Note: {note}") for note in told.get("notes", ()))
