"""What stands apart from a library's record: its models' classes, and curated attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_records import MODELS, PART, Record, load_record
from envdoctor.patterns import row_pattern
from envdoctor.rules.ranges import version_satisfies
from envdoctor.upgrading.bindings import is_class
from envdoctor.upgrading.breaks import Break, by_rename
from envdoctor.upgrading.gone import Move, end_of, had, lives
from envdoctor.upgrading.renames import Renames
from envdoctor.upgrading.uses import Kind, Use

_OF_CLASSES = frozenset((Kind.KEYWORD, Kind.POSITION, Kind.PATH, Kind.MEMBER))
_BELOW = (0, 1)
"""How many names may stand below a class of which an argument is given: it, or a method."""


def models_told(matrix: Matrix, library: str, use: Use, move: Move) -> tuple[Use, Record] | None:
    """Return the use and the record of the library's models where that alone tells of the class."""
    if use.kind not in _OF_CLASSES:
        return None
    parts = use.path.split(".")
    place = next((place for place, part in enumerate(parts) if is_class(part)), len(parts))
    below = len(parts) - place - 1
    if below not in (_BELOW if use.kind is Kind.KEYWORD else (int(use.kind is Kind.PATH),)):
        return None
    record = load_record(matrix.folder, library)
    own = record.members.get(parts[place]) if record else None
    if record is not None and own is not None and lives(record, own, move.new):
        return None
    part = load_record(matrix.folder, f"{library}{PART}{MODELS}")
    if part is None or (move.old is not None and not part.knows(move.old)):
        return None
    owner, _, name = use.path.rpartition(".")
    member = replace(use, kind=Kind.MEMBER, path=owner, name=name)
    return (member if use.kind is Kind.PATH else use), part


def by_attribute(
    rows: Iterable[tables.AttributeRow], renames: Renames, use: Use, move: Move, path: str, owner: str
) -> Break | None:
    """Answer by the curated attributes of a module or class: what no file tells of it."""
    for row in rows:
        form = row_pattern(row.owner, case=True)
        if path.rpartition(".")[2] not in row.names or not form.fullmatch(owner):
            continue
        if form.fullmatch(f"Zz{owner}"):
            continue  # of whatever class is called so an error line tells, the code does not
        if not version_satisfies(move.new, row.having) and had(row.having, move):
            return Break(use, path, end_of(row.having), renames.new_name(path, move) or row.hint)
    return None


def below_gone(use: Use, renames: Renames, move: Move, module: str, warned: bool = False) -> Break | None:
    """Answer by a row of a module that this one is, or lies in; `warned`: alone where its release warns.

    What lies in a module that is on its way out goes with it.
    """
    parts = module.split(".")
    above = (".".join(parts[:length]) for length in range(2, len(parts) + 1))
    rows = ((path, renames.row(path, move)) for path in above)
    found = next((by_rename(use, path, row, move) for path, row in rows if row), None)
    return found if found and (found.warned or not warned) else None
