"""A place in a text that must not leave the machine, and what kind of thing stands there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.values import NamedTuple

_LINE = 200


class Span(NamedTuple):
    """`text[start:end]` is a value of `kind`; `value` is what it stands for when that differs."""

    start: int
    end: int
    kind: str
    value: str | None = None


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, overlapping ones as one span of the longest one's kind."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = _union(merged[-1], span)
        else:
            merged.append(span)
    return merged


def _union(first: Span, second: Span) -> Span:
    if second.end <= first.end:
        return second if second[:2] == first[:2] and second.value else first
    longer = max(first, second, key=lambda s: s.end - s.start)
    return Span(first.start, second.end, longer.kind)


def left_of(text: str, place: int, reach: int) -> str:
    """Return what stands before a place, so many characters at most."""
    return text[max(0, place - reach) : place]


def line_left_of(text: str, place: int) -> str:
    """Return what stands before a place in its line, of a long line the last of it."""
    return left_of(text, place, _LINE).rpartition("\n")[2]


def occurrences(text: str, literal: str) -> Iterator[int]:
    """Yield where `literal` stands in `text`, each after the end of the one before."""
    start = text.find(literal)
    while start >= 0:
        yield start
        start = text.find(literal, start + len(literal))
