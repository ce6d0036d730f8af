"""What texts are searched for and what names stand for, as the rows tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property

from envdoctor import lazy_re as re
from envdoctor.matrix import tables
from envdoctor.matrix.card_names import CardNames
from envdoctor.values import dataclass


class PackageNames:
    """Which distribution a label stands for; without rows it knows none."""

    def __init__(self, rows: Iterable[tables.PackageNameRow] = ()) -> None:
        self._rows = tuple(rows)

    @cached_property
    def names(self) -> frozenset[str]:
        """Normalized names that may be read from loose text; a listing may hold any other."""
        return frozenset(row.name for row in self._rows)

    @cached_property
    def _labels(self) -> dict[str, str]:
        labels = {label: row.name for row in self._rows for label in row.labels}
        for name in self.names:
            labels[name] = labels[name.replace("-", " ")] = name
        return labels

    def find(self, label: str) -> str | None:
        """Return the normalized name of the distribution that `label` (lower case) stands for, or None."""
        return self._labels.get(label) or self._labels.get(label.replace("_", "-"))

    @cached_property
    def mentions(self) -> re.Pattern[str]:
        """A pattern for a name followed by its version in running text (groups name, between, version)."""
        labels = {re.escape(label).replace(r"\-", "[-_ ]").replace(r"\ ", "[-_ ]") for label in self._labels}
        choice = "|".join(sorted(sorted(labels), key=len, reverse=True)) or r"(?!)"
        return re.compile(
            rf"(?i)(?<![A-Za-z0-9_./=@-])(?P<name>{choice})"
            r"(?P<between>[`*]{0,2}\s{0,2}(?:docker |image )?(?:with )?(?:custom )?(?:version|ver\.?|版本)?"
            r"\s{0,2}(?:==|-{1,2}>|=>|→|[=:@-]|is|at|是|为|는|은)?\s{0,2}[`*(\[v]{0,3})"
            rf"(?P<version>(?:\d{{1,4}}\.\d{{1,9}}[\w.+]*)(?: post\d{{1,2}}(?!\w))?)(?![\w%])"
        )


class Frameworks(Mapping[str, "tables.FrameworkRow"]):
    """The rows by name, the likeliest first; read when first asked for."""

    def __init__(self, rows: Callable[[], Iterable[tables.FrameworkRow]] = tuple) -> None:
        self._read = rows

    @cached_property
    def _rows(self) -> dict[str, tables.FrameworkRow]:
        return {row.name: row for row in self._read()}

    def __getitem__(self, name: str) -> tables.FrameworkRow:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def with_bases(self, name: str) -> tuple[str, ...]:
        """Return a framework and those whose settings it inherits."""
        row = self.get(name)
        return (name, *(row.bases if row else ()))


@dataclass(frozen=True)
class Lexicon:
    """What a reader of texts knows; without any it reads what stands in tables and listings."""

    symptoms: tuple[tables.SymptomRow, ...] = ()
    keys: tuple[tables.KeyRow, ...] = ()
    cards: CardNames = field(default_factory=CardNames)
    packages: PackageNames = field(default_factory=PackageNames)
    frameworks: Frameworks = field(default_factory=Frameworks)
    tellings: Callable[[], tuple[tables.TellingRow, ...]] = tuple
    """How people tell error lines in their own words; asked for where a text shows none."""
