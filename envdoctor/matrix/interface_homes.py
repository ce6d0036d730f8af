"""Where a name stands now that left the module it was in."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from envdoctor.matrix.interface_records import Record
from envdoctor.matrix.late_tables import holding


def home_of(record: Record, version: Version, path: str, name: str) -> str:
    """Return where a name that left its module is in a release; empty where that is not plain."""
    left = path.rpartition(".")[0]
    homes = [
        module
        for module, spans in holding(record.names, name).items()
        if module != left
        and record.has(spans, version)
        and not any(part.startswith(("_", "dummy_")) for part in module.split("."))
    ]
    if record.root in homes:
        return f"{record.root}.{name}"
    if len(inside := [home for home in homes if home.startswith(f"{left}.")]) == 1:
        return f"{inside[0]}.{name}"
    kept = left.rpartition(".")[2]
    near = sorted(
        homes,
        key=lambda home: (
            -_shared_parts(home, left),
            home.rpartition(".")[2] != kept,
            home.count("."),
            home,
        ),
    )
    return f"{near[0]}.{name}" if len(near) == 1 or (near and name[:1].isupper()) else ""


def _shared_parts(one: str, other: str) -> int:
    """Return how many leading parts two modules share."""
    pairs: Sequence[tuple[str, str]] = list(zip(one.split("."), other.split("."), strict=False))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(pairs))
