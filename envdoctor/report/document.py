"""A report as a value, before any format is chosen: rows, tables, bars, code, sections, folds."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from envdoctor.report.words import Tone, Words
from envdoctor.values import dataclass


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
