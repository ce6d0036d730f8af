"""The names of packages, as rows and people write them, found in a text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from envdoctor import lazy_re as re

if TYPE_CHECKING:
    from envdoctor.matrix.tables.packages import PackageNameRow


class PackageNames:
    """Which distribution a label stands for; without rows it knows none."""

    def __init__(self, rows: Iterable[PackageNameRow] = ()) -> None:
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
            rf"(?P<version>(?:\d{{1,4}}\.\d{{1,9}}[\w.+]*))(?![\w%])"
        )
