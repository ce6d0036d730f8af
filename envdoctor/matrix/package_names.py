"""The names of packages as people write them in loose text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from envdoctor import lazy_re as re

if TYPE_CHECKING:
    from envdoctor.matrix.tables.packages import PackageNameRow


class PackageNames:
    """The names and aliases of `[[package_name]]` rows; they are read when a name is first asked for."""

    def __init__(self, read: Callable[[], tuple[PackageNameRow, ...]] = tuple) -> None:
        self._read = read

    @cached_property
    def _labels(self) -> dict[str, str]:
        told = [(label, row.name) for row in self._read() for label in (row.name, *row.aliases)]
        return {**dict(told), **{label.replace("-", " "): name for label, name in told}}

    def find(self, label: str) -> str | None:
        """Return the normalized name of the distribution that `label` (lower case) stands for, or None."""
        return self._labels.get(label) or self._labels.get(label.replace("_", "-"))

    @cached_property
    def mention(self) -> re.Pattern[str]:
        """A name followed by its version in running text (groups name, between, version)."""
        names = {re.escape(x).replace(r"\-", "[-_ ]").replace(r"\ ", "[-_ ]") for x in self._labels}
        choice = "|".join(sorted(sorted(names), key=len, reverse=True)) or "(?!)"
        return re.compile(
            rf"(?i)(?<![A-Za-z0-9_./=@-])(?P<name>{choice})"
            r"(?P<between>[`*]{0,2}\s{0,2}(?:docker |image )?(?:with )?(?:custom )?(?:version|ver\.?|版本)?"
            r"\s{0,2}(?:==|[=:@-]|is|at|是|为|는|은)?\s{0,2}[`*(\[v]{0,3})"
            rf"(?P<version>(?:\d{{1,4}}\.\d{{1,9}}[\w.+]*))(?![\w%])"
        )
