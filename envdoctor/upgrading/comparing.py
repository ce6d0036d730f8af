"""Releases that code compares as texts: an order that turns where a number gets another digit."""

from __future__ import annotations

from packaging.version import Version

from envdoctor.matrix.interface_records import Record
from envdoctor.rules.ranges import version_satisfies
from envdoctor.upgrading.breaks import Break
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.uses import Use


def misread(use: Use, record: Record | None, move: Move) -> Break | None:
    """Judge a comparison by the releases on both sides of the move: as a text `0.10.0` is below `0.9.2`."""
    if not _is_wrong(use, str(move.new)) or (move.old is not None and _is_wrong(use, str(move.old))):
        return None
    later = (one for one in record.versions if move.old is None or Version(one) > move.old) if record else ()
    since = next((one for one in later if _is_wrong(use, one)), str(move.new))
    shown = f"the order of {use.path}.__version__ and {use.name!r} as texts"
    return Break(use, shown, since, "packaging.version.Version of both sides")


def _is_wrong(use: Use, version: str) -> bool:
    by_text = {
        ">=": version >= use.name,
        ">": version > use.name,
        "<=": version <= use.name,
        "<": version < use.name,
    }[use.receiver]
    return by_text != version_satisfies(Version(version), f"{use.receiver}{use.name}")
