"""A profile as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.profile.choosing import SPEED_NOTE, Profile
from envdoctor.profile.search import Found
from envdoctor.profile.workload import Choice

GIB = 1 << 30
WIDTH = 40


def profile_text(profile: Profile) -> str:
    """Return the choice, its bar against the card, what was rejected, notes, and the files."""
    return "\n".join(_lines(profile)) + "\n"


def _lines(profile: Profile) -> Iterator[str]:
    found = profile.found
    cards = len(found.work.cards)
    model = found.work.model or found.work.shape.name
    yield f"{model} on {cards} × {found.work.card.name}, {found.work.task}"
    if found.choice is None:
        yield "nothing fits"
    else:
        yield from _chosen(found, found.choice)
    yield from (f"note: {note}" for note in found.notes)
    yield from _validated(profile)
    if found.rejected:
        yield ""
        yield "rejected:"
        yield from (_rejected(item.to_json()) for item in found.rejected)
        yield f"  ({SPEED_NOTE})"
    for name, text in profile.files.items():
        yield from ("", f"--- {name}", text.rstrip("\n"))


def _chosen(found: Found, choice: Choice) -> Iterator[str]:
    yield "  " + ", ".join(
        f"{key} {_shown(value)}" for key, value in choice.to_json().items() if value not in (False, "")
    )
    if found.need is None:
        return
    need, room = found.need.device_bytes, found.work.room
    filled = min(WIDTH, round(WIDTH * need / room))
    bar = "#" * filled + "." * (WIDTH - filled)
    yield f"  [{bar}] {need / GIB:.1f} of {room / GIB:.1f} GiB at most ({need / room:.0%})"
    parts = sorted(found.need.prediction.components, key=lambda c: -c.bytes)
    yield "  " + ", ".join(f"{part.name} {part.bytes / GIB:.2f}" for part in parts[:6])


def _shown(value: object) -> str:
    return "on" if value is True else str(value)


def _validated(profile: Profile) -> Iterator[str]:
    told = profile.validated
    if told.get("status") == "measured":
        yield (
            f"measured: {told['measured_reserved_bytes'] / GIB:.2f} GiB reserved,"
            f" {told['predicted_reserved_bytes'] / GIB:.2f} predicted at most"
        )
    yield from (f"note: {note}" for note in told.get("notes", ()))


def _rejected(item: dict[str, object]) -> str:
    choice = item["choice"]
    words = ", ".join(f"{k} {_shown(v)}" for k, v in choice.items()) if isinstance(choice, dict) else ""
    faster = f" [{item['relative_speed']}x the speed]" if "relative_speed" in item else ""
    return f"  {words}: {item['why']}{faster}"
