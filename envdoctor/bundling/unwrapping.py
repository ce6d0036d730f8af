"""Colour codes taken out of a text, and edits put in."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Real escape sequences, and the ways in which logs spell them (`\x1b[32m`, `\u001b[32m`, `\033[0m`, `^[[0m`).
ESCAPES = re.compile(
    r"(?:\x1b|\\x1b|\\x1B|\\u001b|\\u001B|\\033|\\e|\^\[)"
    r"(?:\[[0-9;:?]{0,32}[ -/]{0,2}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[()][AB012])"
    r"|\x9b[0-9;:?]{0,32}[@-~]"
    "|[\u00ad\u200b-\u200d\u2060\ufeff]"
)

_JOINTS = frozenset("\u200c\u200d")


def strip_escapes(text: str) -> str:
    """Return `text` without terminal escape sequences, real or spelled out, and without invisible joints."""
    return ESCAPES.sub(_without, text)


def _without(match: re.Match[str]) -> str:
    # Within other scripts and emoji a joint is a letter of its own.
    before = match.string[match.start() - 1 : match.start()]
    return "" if match[0] not in _JOINTS or before.isascii() else match[0]


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
