"""The rows of what libraries renamed, filed by what they rename: names, arguments, errors, answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from packaging.version import Version

from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_records import load_record
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.uses import TELLING, Use

WITHOUT = "() without "
_WITH = "() with more than "
_WORD = 5
"""Letters from which a part of a name tells after what something is called."""
_CLASS = re.compile(r"\b([A-Z]\w{1,60})\(")
_SEVERAL = re.compile(
    r"(?P<module>[\w.]{1,120}\.)\((?P<names>\w{1,60}\|[\w|]{1,900})\)(?P<argument>\(\w{1,60}\))?"
)
_OF_FUNCTION = re.compile(r"[a-z]\w{1,60}\(([a-z]\w{1,60})\)")


class Renames:
    """The rows of renames of the libraries that move, each asked for by what stands in the code."""

    def __init__(
        self, rows: Sequence[tables.RenameRow], attributes: Sequence[tables.AttributeRow] = ()
    ) -> None:
        self.attributes: dict[str, list[tables.AttributeRow]] = {}
        """The curated attributes of modules and classes, by library."""
        for told in (one for one in attributes if one.library):
            self.attributes.setdefault(told.library or "", []).append(told)
        self._by_old = {old: row for row in rows if not row.answered for old in _each_of(row.old)}
        self._answered = [(old, row) for row in rows if row.answered for old in _each_of(row.old)]
        self._met: dict[Move, list[str]] = {}
        self.unsaid: dict[str, list[tables.RenameRow]] = {}
        """Methods whose answer is another where an argument is not given, by their name."""
        self.handed: dict[str, list[tables.RenameRow]] = {}
        """Methods that the library calls with more, or in another way, by their name."""
        self.handed_on: dict[str, list[tables.RenameRow]] = {}
        """Arguments of functions and methods, by their telling name: whoever hands them on gives the same."""
        self._others: dict[str, tables.RenameRow] = {}
        self.raised: dict[str, list[tables.RenameRow]] = {}
        """Errors that are raised no more, by the library's module."""
        for row in rows:
            found = _OF_FUNCTION.fullmatch(row.old)
            if found and len(found[1]) >= TELLING:
                self.handed_on.setdefault(found[1], []).append(row)
            if _WITH in row.old:
                self._others[row.old.partition(_WITH)[0]] = row
            elif WITHOUT in row.old:
                name = row.old.partition(WITHOUT)[0].rpartition(".")[2]
                self.unsaid.setdefault(name, []).append(row)
            elif row.old.startswith("except "):
                self.raised.setdefault(row.old.split(".")[0].removeprefix("except "), []).append(row)
            elif row.old.startswith("def "):
                self.handed.setdefault(row.old.rpartition(".")[2], []).append(row)

    def named(self, libraries: Mapping[str, Move]) -> Iterator[str]:
        """Yield patterns of the methods that are judged by their name alone where these libraries move."""
        for name, rows in self.unsaid.items():
            if _any_of((row for row in rows if row.old.startswith(name)), libraries):
                yield re.escape(name)
        for old, row in self._by_old.items():
            if old.count("().") == 1 and old[-2:] == "()" and row.library in libraries:
                yield re.escape(old[1:-2].rpartition(".")[2])
        for name, rows in self.handed.items():
            if _any_of(rows, libraries) and name[:2] != "__":
                yield f"def {re.escape(name)}"

    def known(self, old: str) -> tables.RenameRow | None:
        """Return the row of a name, whatever moves."""
        return self._by_old.get(old)

    def row(self, old: str, move: Move) -> tables.RenameRow | None:
        """Return the row of a name that the move meets."""
        row = self._by_old.get(old)
        return row if row is not None and holds(row, move) else None

    def other(self, callable_: str, argument: str, move: Move) -> tables.RenameRow | None:
        """Return the row of a callable that takes an argument of any name, and whose own this one is not."""
        row = self._others.get(callable_)
        own = row.old.partition(_WITH)[2].split("|") if row else ()
        return row if row and argument not in own and holds(row, move) else None

    def new_name(self, path: str, move: Move) -> str:
        """Return what a path is called after the move; empty where no row tells."""
        row = self.row(path, move)
        return row.new if row else ""

    def is_answered(self, shown: str, move: Move) -> bool:
        """True for what the library still takes or brings, though no file of it tells."""
        if move not in self._met:
            self._met[move] = [old for old, row in self._answered if holds(row, move)]
        return any(fnmatchcase(shown, old) for old in self._met[move])


def _each_of(old: str) -> Iterator[str]:
    """Yield what a row tells of: `f(x=a|b)` is two values, `module.(a|b)` two names, with `(x)` theirs."""
    if several := _SEVERAL.fullmatch(old):
        ending = several["argument"] or ""
        yield from (f"{several['module']}{name}{ending}" for name in several["names"].split("|"))
        return
    head, equals, values = old.partition("=")
    if equals and "|" in values and WITHOUT not in old:
        yield from (f"{head}={value})" for value in values.removesuffix(")").split("|"))
    else:
        yield old


def holds(row: tables.RenameRow, move: Move) -> bool:
    """True where the move meets what the row tells: the end, or a warning of it."""
    first = Version(row.deprecated or row.since or "0")
    return move.new >= first and (row.since is None or move.old is None or move.old < Version(row.since))


def _any_of(rows: Iterable[tables.RenameRow], libraries: Mapping[str, Move]) -> bool:
    return any(row.library in libraries for row in rows)


def is_taken_by_new(use: Use, row: tables.RenameRow, matrix: Matrix) -> bool:
    """True for a dictionary of the class in the row's answer: called after it, or with what it takes."""
    owner = _CLASS.search(row.new)
    words = use.receiver.lower().split("_") if owner else ()
    if any(len(word) >= _WORD and word in row.new.lower() for word in words):
        return True
    record = load_record(matrix.folder, row.library) if owner else None
    told = record.keywords.get(f"{owner[1]}.__init__", {}) if record and owner else {}
    return any(name in told for name in use.given - {use.name})
