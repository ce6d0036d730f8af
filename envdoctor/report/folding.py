"""Which sections stand open, and which stand inside others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from envdoctor.report.document import Block, Fold, Section
from envdoctor.report.words import counted

T = TypeVar("T")
OPEN = 5
"""Sections of a kind that stand open; the rest fold into a count."""


def opened(sections: Sequence[Section], noun: str, unfold: bool, limit: int = OPEN) -> list[Block]:
    """Return the first sections open and the others in a fold."""
    rest = () if unfold else tuple(sections[limit:])
    shown = sections[: len(sections) - len(rest)]
    return [*shown, *([Fold(counted(len(rest), f"more {noun}"), rest)] if rest else ())]


def trees(
    items: Sequence[T],
    name: Callable[[T], str],
    cause: Callable[[T], str | None],
    section: Callable[[T, tuple[Section, ...]], Section],
) -> Iterator[Section]:
    """Yield a section for each item that follows from no other, with those that follow from it inside."""
    names = [name(item) for item in items]
    done: set[int] = set()

    def tree(place: int) -> Section:
        done.add(place)
        inner = (p for p, item in enumerate(items) if cause(item) == names[place] and p not in done)
        return section(items[place], tuple(tree(p) for p in inner))

    known = set(names)
    for place in sorted(range(len(items)), key=lambda p: cause(items[p]) in known):
        if place not in done:
            yield tree(place)
