"""What breaks: a use that a release does not have any more, and what stands in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from packaging.version import Version

from envdoctor.findings import Certainty
from envdoctor.matrix import tables
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.uses import Kind, Place, Use
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Break:
    """One use that a release does not have any more. `since` is empty where no release is known."""

    use: Use
    name: str
    since: str
    replacement: str = ""
    certainty: Certainty = Certainty.CERTAIN
    warned: bool = False
    """True where the release still has it and warns: it goes with `since`."""
    library: str = ""
    """The distribution, where the use's path does not tell it."""

    @property
    def short(self) -> str:
        """The name without whose it is: a method told of its class and of whatever has it is one."""
        told = self.name.removesuffix("()")
        return told.rpartition(".")[2] or told


def by_rename(use: Use, shown: str, row: tables.RenameRow, move: Move) -> Break:
    """Return a use that a row of renames tells of; warned of where its release is still to come."""
    warned = row.since is None or move.new < Version(row.since)
    return Break(use, shown, row.since or "", row.new, warned=warned, library=row.library)


def users(found: Break, written: Mapping[str, Sequence[Place]]) -> Iterator[Break]:
    """Yield the lines that use what an import no longer brings, where they have to change with it."""
    path, last = f"{found.use.path}.{found.use.name}", found.replacement.rpartition(".")[2]
    if found.use.kind is Kind.IMPORT and last != found.use.name:
        for place in written.get(path, ()):
            yield replace(found, use=Use(Kind.NAME, path, place, found.use.name))
