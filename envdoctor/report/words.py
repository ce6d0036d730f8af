"""Texts in tones: what a document's parts are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from envdoctor.findings import Finding, Severity

Tone = Literal["", "error", "warning", "note", "ok", "strong", "dim", "doubt", "code"]


class Span(NamedTuple):
    """A run of characters in one tone."""

    text: str
    tone: Tone = ""


Words: TypeAlias = str | Span | tuple[str | Span, ...]
"""A text in one or several tones; it may hold anything, each format makes it harmless."""


def spans(words: Words) -> Iterator[Span]:
    """Yield the runs of a text."""
    for part in (words,) if isinstance(words, (str, Span)) else words:
        yield part if isinstance(part, Span) else Span(part)


def plain(words: Words) -> str:
    """Return a text without its tones."""
    return "".join(span.text for span in spans(words))


def counted(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def severities(findings: Sequence[Finding]) -> str:
    """Return `2 errors, 1 warning`, or that nothing was found."""
    counts = Counter(f.severity for f in findings)
    return ", ".join(counted(counts[s], s.value) for s in Severity if counts[s]) or "nothing found"
