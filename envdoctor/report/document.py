"""A report as a value, before any format is chosen: words in tones, rows, tables, bars, sections, folds.

Whatever a paste or a machine said, a terminal is never commanded by it: `visible` is the one sanitiser.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias, TypeVar

from envdoctor.facts.quantities import counted
from envdoctor.findings import Finding, Severity
from envdoctor.values import NamedTuple, dataclass

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


def severities(findings: Sequence[Finding]) -> str:
    """Return `2 errors, 1 warning`, or that nothing was found."""
    counts = Counter(f.severity for f in findings)
    return ", ".join(counted(counts[s], s.value) for s in Severity if counts[s]) or "nothing found"


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    words: Words


class Row(NamedTuple):
    """A label and what it stands for, where that was read, and lines to type; no label: as the row above."""

    label: str
    words: Words
    source: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Labels with their values."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the columns of `numbers` (counted from 0) stand to the right; an empty head is not shown."""

    head: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    numbers: tuple[int, ...] = ()


class Run(NamedTuple):
    """A stretch of a bar, in the bars' unit; `told` is what it stands for."""

    start: float
    end: float
    tone: Tone = ""
    told: str = ""


class Bar(NamedTuple):
    """Runs between a label and their meaning in words; a later run covers an earlier one."""

    label: str
    runs: tuple[Run, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars over one axis of `length`, with a mark at `limit` and, if they are named, the axis' two ends."""

    bars: tuple[Bar, ...]
    length: float
    limit: float | None = None
    ends: tuple[str, str] | None = None

    @property
    def figures(self) -> bool:
        """True when every bar stands for a number: numbers stand to the right."""
        return all(bar.words[:1].isdigit() for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are kept as they are."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title; one with a severity is a finding, and those inside it follow from it."""

    title: Words
    blocks: tuple[Block, ...]
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks behind a summary: text shows that alone."""

    summary: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Text | Rows | Table | Bars | Code | Section | Fold


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: its title, if it has one, is the answer in a line, its foot says who made it."""

    title: Words
    tone: Tone
    blocks: tuple[Block, ...]
    foot: str = ""


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


# C0 but tab and newline, DEL, C1, bidi and other invisible format controls, line and paragraph separators.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return `text` with every control, bidi and invisible character shown as an escape such as `\\x1b`."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
