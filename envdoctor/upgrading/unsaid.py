"""Rows of what is not written: `name() without argument`, and `except module.Error` of what is not raised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from envdoctor.findings import Certainty
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_records import load_record
from envdoctor.upgrading.bindings import is_class
from envdoctor.upgrading.breaks import Break, by_rename
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.renames import WITHOUT, Renames, holds
from envdoctor.upgrading.uses import ALL, Kind, Use

Asked = Collection[tuple[str, str]]
"""The members that a text asks for, with the last name of what it asks."""


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


def called_by_name(
    use: Use, renames: Renames, moves: Mapping[str, Move], libraries: Iterable[str], asked: Asked
) -> Break | None:
    """Answer by the rows of methods that a text calls so which uses the library, or one after the other.

    Where what the row tells to ask of the answer is asked of the name that is given it, that is cared for.
    """
    chained = renames.known(f".{use.receiver}().{use.name}()")
    known = chained or renames.known(f".{use.name}()")
    move = moves.get(known.library) if known and (chained or known.library in libraries) else None
    if known is None or move is None or not holds(known, move):
        return None
    if any(name in known.new and f"to {receiver}" in use.given for receiver, name in asked):
        return None
    return replace(by_rename(use, known.old, known, move), certainty=Certainty.LIKELY)


def function_unsaid(use: Use, renames: Renames, library: str, move: Move) -> Break | None:
    """Return what a row tells of a call of a module's function.

    One that is told by its whole path only answers otherwise, which not every caller minds.
    """
    owner, _, name = use.path.rpartition(".")
    for row in renames.unsaid.get(name, ()) if not is_class(owner.rpartition(".")[2]) else ():
        path, _, told = row.old.partition(WITHOUT)
        if path not in (name, use.path) or row.library != library or not holds(row, move):
            continue
        if use.given.isdisjoint({*told.split("|"), ALL}):
            found = by_rename(use, f"{path}{WITHOUT}{told.partition('|')[0]}", row, move)
            return found if path == name else replace(found, certainty=Certainty.LIKELY)
    return None


def first_given(use: Use, renames: Renames, move: Move) -> Break | None:
    """Answer by the rows of what a callable is given first, written out: `callable(#0='text')`."""
    short = use.path.rpartition(".")[2]
    for told in use.given:
        if told[:1] == "#" and (row := renames.row(f"{short}({told})", move)):
            return by_rename(use, f"{use.path}({told.partition('=')[2]})", row, move)
    return None


def raised_no_more(
    use: Use,
    uses: Iterable[Use],
    rows: Iterable[tables.RenameRow],
    moves: Mapping[str, Move],
    matrix: Matrix,
    library_of: Callable[[str], str],
) -> Iterator[Break]:
    """Yield an error that a library's functions raise no more, where nobody else here may raise it."""
    root = use.path.partition(".")[0]
    for row in rows:
        move = moves.get(row.library)
        if not (move and fnmatchcase(f"except {root}.{use.name}", row.old) and holds(row, move)):
            continue
        paths = [one.path for one in uses if one.kind in (Kind.IMPORT, Kind.MODULE, Kind.PATH)]
        record = load_record(matrix.folder, row.library)
        own = record.names.get(record.root, {}) if record else {}
        tried = [one for one in use.given if one[:1] != "." or one[1:] in own]
        called = any(one.kind is Kind.POSITION and one.path.startswith(f"{root}.") for one in uses)
        called = any(one.startswith(f"{root}.") for one in tried) if tried else called
        if not called and any(library_of(path) == row.library for path in paths):
            yield replace(by_rename(use, use.path, row, move), certainty=Certainty.LIKELY)
