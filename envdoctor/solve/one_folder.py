"""Builds of one code that lie in one folder (`opencv-python` and `opencv-python-headless` in `cv2`).

Of two in unlike releases the one that is installed last leaves some files of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envdoctor.matrix.tables.packages import PackageTraitRow
from envdoctor.solve.nodes import Context, Node
from envdoctor.values import NamedTuple


class Overlaid(NamedTuple):
    """Two nodes of an answer in unlike releases, and the place of the first one's release in the second."""

    one: Node
    other: Node
    place: int


def overlaid(context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]) -> Iterator[Overlaid]:
    """Yield the pairs of an answer that lie in one folder in unlike releases, where both have one alike."""
    rows = [row for row in context.matrix.rows(PackageTraitRow) if row.alike and row.name in nodes]
    for row in rows:
        beside = {row.over, *(one.name for one in rows if one.over == row.over and one.name < row.name)}
        for one in (nodes[name] for name in sorted(filter(None, beside)) if name in nodes):
            other, version = nodes[row.name], one.version(bits[one.name])
            place = other.package.position.get(version)
            if place is not None and version != other.version(bits[row.name]):
                yield Overlaid(one, other, place)


def alike_unread(
    context: Context, nodes: Mapping[str, Node], bits: Mapping[str, int]
) -> dict[str, frozenset[str]]:
    """Return, by package, the release of what lies over it that is to be read."""
    return {
        pair.other.name: frozenset((f"=={pair.other.package.versions[pair.place]}",))
        for pair in overlaid(context, nodes, bits)
        if pair.other.package.unread >> pair.place & 1
    }
