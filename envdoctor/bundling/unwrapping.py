"""Seeing through a terminal: colour codes taken out, and tokens that were broken across lines found whole."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

# Real escape sequences, and the ways in which logs spell them (`\x1b[32m`, `\u001b[32m`, `\033[0m`, `^[[0m`).
ESCAPES = re.compile(
    r"(?:\x1b|\\x1b|\\x1B|\\u001b|\\u001B|\\033|\\e|\^\[)"
    r"(?:\[[0-9;:?]{0,32}[ -/]{0,2}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[()][AB012])"
    r"|\x9b[0-9;:?]{0,32}[@-~]"
    "|[\u00ad\u200b-\u200d\u2060\ufeff]"
)
TOKEN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~+/=%")
_BEFORE_BREAK = frozenset(" \t\r|│┃\\")
_AFTER_BREAK = frozenset(" \t\r|│┃>")
_REACH = 120
# A launcher's mark before each line: `[rank0]: `, `(EngineCore pid=312) `.
_MARK = re.compile(r"(?:\[[A-Za-z0-9_.-]{1,24}\]:?[ ]{1,2}|\([A-Za-z0-9_=, -]{1,60}\)[ ])")


def strip_escapes(text: str) -> str:
    """Return `text` without terminal escape sequences, real or spelled out, and without invisible joints."""
    return ESCAPES.sub("", text)


@dataclass(frozen=True, slots=True)
class Joined:
    """A text without its line breaks inside tokens, and the way back to the original's offsets."""

    text: str
    joins: tuple[int, ...]
    """Offsets in `text` at which a break was taken out."""
    removed: tuple[tuple[int, int], ...]
    """The break's span in the original, one for each join."""

    def spans_join(self, start: int, end: int) -> bool:
        """True when a break lies inside `start:end`."""
        return bisect_right(self.joins, start) < bisect_left(self.joins, end)

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the spans in the original that `start:end` is made of, one for each line."""
        first, last = bisect_right(self.joins, start), bisect_left(self.joins, end)
        cuts = [start, *self.joins[first:last], end]
        return [
            (self._original(a, first + i), self._original(a, first + i) + b - a)
            for i, (a, b) in enumerate(pairwise(cuts))
        ]

    def _original(self, offset: int, joins_before: int) -> int:
        if joins_before == 0:
            return offset
        return self.removed[joins_before - 1][1] + offset - self.joins[joins_before - 1]


def join(text: str) -> Joined:
    """Return `text` with the breaks taken out that have a token's characters on both sides."""
    parts: list[str] = []
    joins: list[int] = []
    removed: list[tuple[int, int]] = []
    done, length, newline = 0, 0, text.find("\n")
    while newline >= 0:
        start, end = _break_around(text, newline, done)
        if start > done and end < len(text) and _joinable(text, start, end):
            parts.append(text[done:start])
            length += start - done
            joins.append(length)
            removed.append((start, end))
            done = end
        newline = text.find("\n", max(newline + 1, end))
    parts.append(text[done:])
    return Joined("".join(parts), tuple(joins), tuple(removed))


def _joinable(text: str, start: int, end: int) -> bool:
    return text[start - 1] in TOKEN_CHARACTERS and text[end] in TOKEN_CHARACTERS


def _break_around(text: str, newline: int, floor: int) -> tuple[int, int]:
    start, end = newline, newline + 1
    while start > max(floor, newline - _REACH) and text[start - 1] in _BEFORE_BREAK:
        start -= 1
    if mark := _MARK.match(text, end):
        end = mark.end()
    while end < min(len(text), newline + _REACH) and text[end] in _AFTER_BREAK:
        end += 1
    if start > floor and text[start - 1] in "\"'" and text[end : end + 1] == text[start - 1]:
        # Adjacent literals: `"hf_abc"` on one line goes on as `"def"` on the next.
        start, end = start - 1, end + 1
    return start, end


Edit = tuple[int, int, str]


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` with each `(start, end, replacement)` applied; of overlapping edits the first stands."""
    parts: list[str] = []
    done = 0
    for start, end, replacement in sorted(edits):
        if start < done:
            continue
        parts.append(text[done:start])
        parts.append(replacement)
        done = end
    parts.append(text[done:])
    return "".join(parts)
