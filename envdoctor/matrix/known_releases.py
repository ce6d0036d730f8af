"""What a snapshot already tells of a package, in the index's terms, so that an update reads only what is new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envdoctor.matrix.snapshot import Package, Snapshot


@dataclass(frozen=True, slots=True)
class KnownReleases:
    """The releases that a snapshot covers; `source` names it."""

    snapshot: Snapshot
    source: str

    def of(self, name: str) -> dict[str, tuple[str, ...] | None]:
        """Return the requirement lines of each known version, None where they are unknown."""
        package = self.snapshot.package(name)
        if package is None:
            return {}
        rows = package.raw["r"]
        lines: dict[int, tuple[str, ...] | None] = {-1: None}
        for row in set(rows) - {-1}:
            lines[row] = tuple(self._lines(package, row))
        return {version: lines[row] for version, row in zip(package.versions, rows, strict=True)}

    def _lines(self, package: Package, row: int) -> Iterator[str]:
        for extra in ("", *sorted(package.extras(row))):
            for needed in package.requirements(row, extra):
                target = self.snapshot.package(needed.name)
                spec = target.spec_text(needed.spec) if target else ""
                extras = f"[{','.join(needed.extras)}]" if needed.extras else ""
                marker = self._marker(needed.marker, extra)
                yield f"{needed.name}{extras}{spec}" + (f"; {marker}" if marker else "")

    def _marker(self, number: int, extra: str) -> str:
        parts = [] if number < 0 else [marker_text(self.snapshot.markers[number])]
        asked = [f'extra == "{extra}"'] if extra else []
        if parts and asked and " or " in parts[0]:
            parts = [f"({parts[0]})"]
        return " and ".join(parts + asked)


def marker_text(tree: Any) -> str:
    """Return a marker tree as the marker that it was made from."""
    if tree[0] in ("and", "or"):
        joined = f" {tree[0]} ".join(
            f"({marker_text(part)})" if part[0] in ("and", "or") else marker_text(part) for part in tree[1:]
        )
        return joined
    left, operator, right = tree
    return f"{_side(left)} {operator} {_side(right)}"


def _side(side: str) -> str:
    return side[1:] if side.startswith("$") else f'"{side}"'
