"""Calls whose answer is another where an argument is not given: rows `name() without argument`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from envdoctor.findings import Certainty
from envdoctor.matrix import tables
from envdoctor.upgrading.breaks import Break, by_rename
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.renames import WITHOUT, holds
from envdoctor.upgrading.uses import ALL, Use


def methods_unsaid(use: Use, rows: Iterable[tables.RenameRow], moves: Mapping[str, Move]) -> Iterator[Break]:
    """Yield what rows of methods tell of a call; a row may name receivers that it does not mean."""
    for row in rows:
        name, _, told = row.old.partition(WITHOUT)
        move = moves.get(row.library) if "." not in name else None
        settled = told.split("|")
        settled += [f"{one.partition('=')[0]}=?" for one in settled if "=" in one]
        given = use.given | {f"{use.receiver.lower().rpartition('_')[2]}."}
        if move and holds(row, move) and given.isdisjoint((*settled, ALL)):
            yield replace(by_rename(use, row.old, row, move), certainty=Certainty.LIKELY)


def function_unsaid(use: Use, rows: Iterable[tables.RenameRow], library: str, move: Move) -> Break | None:
    """Return what a row tells of a call of a module's function.

    One that is told by its whole path only answers otherwise, which not every caller minds.
    """
    name = use.path.rpartition(".")[2]
    for row in rows:
        path, _, told = row.old.partition(WITHOUT)
        if path not in (name, use.path) or row.library != library or not holds(row, move):
            continue
        if use.given.isdisjoint({*told.split("|"), ALL}):
            found = by_rename(use, f"{path}{WITHOUT}{told.partition('|')[0]}", row, move)
            return found if path == name else replace(found, certainty=Certainty.LIKELY)
    return None
