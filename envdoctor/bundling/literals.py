"""Exact strings sought in a text: the cost is by the text's length, not by how many they are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

_LONG, _SHORT = 8, 4
"""By how many of their first characters strings are kept apart."""

T = TypeVar("T")


class Found(NamedTuple, Generic[T]):
    """A string that was sought, where it stands, and what was noted of it."""

    start: int
    end: int
    note: T


@dataclass(slots=True)
class _Bucket:
    """The strings with one beginning, sorted, each with the longest other one that it begins with."""

    items: list[str] = field(default_factory=list)
    shorter: list[int] = field(default_factory=list)
    longest: int = 0

    def settle(self) -> None:
        self.items.sort()
        self.longest = max(map(len, self.items))
        self.shorter = []
        open_items: list[int] = []
        for place, item in enumerate(self.items):
            while open_items and not item.startswith(self.items[open_items[-1]]):
                open_items.pop()
            self.shorter.append(open_items[-1] if open_items else -1)
            open_items.append(place)

    def longest_at(self, text: str, start: int) -> str | None:
        if len(self.shorter) != len(self.items):
            self.settle()
        ahead = text[start : start + self.longest]
        place = bisect_right(self.items, ahead) - 1
        while place >= 0 and not ahead.startswith(self.items[place]):
            place = self.shorter[place]
        return self.items[place] if place >= 0 else None


class Literals(Generic[T]):
    """Strings of four or more characters, each with a note; the first note of a string stands."""

    __slots__ = ("_buckets", "_notes")

    def __init__(self) -> None:
        self._notes: dict[str, T] = {}
        self._buckets: dict[int, dict[str, _Bucket]] = {_LONG: {}, _SHORT: {}}

    def add(self, literal: str, note: T) -> None:
        """Seek `literal` from now on."""
        if literal in self._notes or len(literal) < _SHORT:
            return
        self._notes[literal] = note
        width = _LONG if len(literal) >= _LONG else _SHORT
        self._buckets[width].setdefault(literal[:width], _Bucket()).items.append(literal)

    def find(self, text: str) -> Iterator[Found[T]]:
        """Yield where the strings stand in `text`, the longest at each place, none inside another."""
        for width, buckets in self._buckets.items():
            done = 0
            for start in _places(text, width, buckets):
                literal = (
                    buckets[text[start : start + width]].longest_at(text, start) if start >= done else None
                )
                if literal is not None:
                    done = start + len(literal)
                    yield Found(start, done, self._notes[literal])


def _places(text: str, width: int, buckets: dict[str, _Bucket]) -> list[int]:
    if not buckets:
        return []
    return [i for i in range(len(text) - width + 1) if text[i : i + width] in buckets]
