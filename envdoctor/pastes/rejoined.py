"""Error lines that were broken where a terminal, a mail or a form was too narrow, read as one again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.matrix import tables
from envdoctor.pastes.symptoms import Sight, scan
from envdoctor.values import replace

_WIDE = 60
"""Letters from which on a line may be broken before a capital, too."""
_ENDED = re.compile(r"[.!?:;|}>]\s*$")
_BEGINS_ANEW = re.compile(
    r"\s*(?:[\[|>#*$•=+`-]|File \"|at |\w+Error\b|\w+Warning\b|[\w.-]{1,40}\s?[:=]|\d[\d:., -]{7}|$)"
)
_GOES_ON = re.compile(r"\s*[a-z\d(]")


def scan_rejoined(lines: Sequence[str], patterns: Sequence[tables.SymptomRow]) -> list[Sight]:
    """Return the signatures of failures in lines that go on in the next, each quoted as one line.

    One that runs over from a joined line into another is none: the two may stand far apart.
    """
    broken = list(_broken(lines))
    found = scan([" ".join(map(str.strip, pieces)) for _, pieces in broken], patterns) if broken else []
    within = (sight for sight in found if is_failure(sight) and len(sight.spans) == 1)
    return [_in_place(sight, *broken[sight.line]) for sight in within]


def _in_place(sight: Sight, first: int, pieces: Sequence[str]) -> Sight:
    """Return a signature that was met in a joined line with the lines and columns of its pieces."""
    ((_, begin, end),) = sight.spans
    spans, joined = [], 0
    for line, piece in enumerate(pieces, first):
        words = piece.strip()
        indent = piece.index(words)
        if begin < joined + len(words) and joined < end:
            spans.append((line, indent + max(0, begin - joined), indent + min(len(words), end - joined)))
        joined += len(words) + 1
    return replace(sight, line=spans[0][0], spans=tuple(spans), again=())


def is_failure(sight: Sight) -> bool:
    """True for a signature that names what failed, not only that something did."""
    return not sight.pattern.informs and not sight.pattern.fault


def _broken(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the first of several lines into which one was broken, and all of them."""
    first = 0
    for index in range(1, len(lines) + 1):
        if index < len(lines) and _is_soft(lines[index - 1], lines[index]):
            continue
        if index - first > 1:
            yield first, lines[first:index]
        first = index


def _is_soft(line: str, following: str) -> bool:
    """True where a line ends amid a sentence, and the next one goes on with it."""
    if not line.strip() or _ENDED.search(line) or _BEGINS_ANEW.match(following):
        return False
    return bool(_GOES_ON.match(following)) or len(line.rstrip()) >= _WIDE
