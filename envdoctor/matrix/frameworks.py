"""What trains and serves, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envdoctor.matrix.tables.frameworks import FrameworkRow


class Frameworks(Mapping[str, "FrameworkRow"]):
    """The rows by name, the likeliest first; read when first asked for."""

    def __init__(self, rows: Callable[[], Iterable[FrameworkRow]] = tuple) -> None:
        self._read = rows

    @cached_property
    def _rows(self) -> dict[str, FrameworkRow]:
        return {row.name: row for row in self._read()}

    def __getitem__(self, name: str) -> FrameworkRow:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def with_bases(self, name: str) -> tuple[str, ...]:
        """Return a framework and those whose settings it inherits."""
        row = self.get(name)
        return (name, *(row.bases if row else ()))
