"""Pins for code as it stands: what it imports is there and imports, and no release lost what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from envdoctor.findings import Certainty
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_records import Record, load_record
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.solve.answer import PinSet
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin
from envdoctor.solve.requests import Request
from envdoctor.upgrading.arguments import refuses
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.importing import recorded_spans
from envdoctor.upgrading.needing import CodeImports, Wanted, imports_of_code, wanted_by_modules
from envdoctor.upgrading.sources import find_files, read_text
from envdoctor.upgrading.submodules import needed_by_code
from envdoctor.upgrading.upgrading import Found, Known, judge_paths, moves_of_its_time
from envdoctor.upgrading.uses import NAMED, Kind

if TYPE_CHECKING:
    from envdoctor.harvest.module_reader import ModuleReader

_WORD = re.compile(r"[A-Za-z]\w+")
NAMED_UNREAD = 4
"""So many packages are named that were not read."""
ROUNDS = 5
"""How often an answer may bring releases that lost, or need, something else."""


def pinned_for_code(goal: Goal, answer: PinSet, matrix: Matrix, paths: Sequence[str]) -> PinSet:
    """Return pins under which what the code asks for stands; what cannot be had is noted.

    `answer` is the goal's whatever the code; without code what was looked up is to be imported. Raises
    InputError for a path that is none.
    """
    asked, unmet, held = len(goal.requests), dict[Request, str](), list[Wanted]()
    with goal.coverage.modules() if goal.coverage else nullcontext() as reader:
        code = _Code(matrix, reader, paths)
        for _ in range(ROUNDS):
            if answer.status != "solved":
                break
            wanted = [one for one in code.wanted(goal, answer) if one.request not in unmet]
            if not wanted:
                break
            goal, answer = _met(goal, answer, wanted, unmet, held)
    besides = tuple(map(str, goal.requests[asked:]))
    notes = (*answer.notes, *unmet.values(), *code.torn.values(), *_unread(reader))
    return replace(answer, notes=notes, besides=besides)


def _unread(reader: ModuleReader | None) -> Iterator[str]:
    """Say what was not read for what it imports, since reading took too long."""
    if reader is not None and reader.unread:
        names = sorted(reader.unread)
        more = f" and {len(names) - NAMED_UNREAD} more" if len(names) > NAMED_UNREAD else ""
        told = ", ".join(names[:NAMED_UNREAD]) + more
        yield f"not all was read of what is imported ({told}): the index is slow; once more, it reads on"


@dataclass
class _Code:
    """Code, for which answers are judged one after another."""

    matrix: Matrix
    reader: ModuleReader | None
    paths: Sequence[str]
    judged: set[tuple[str, str]] = field(default_factory=set)
    """The releases, by name, of which the code's uses were judged."""
    torn: dict[str, str] = field(default_factory=dict)
    """By name: that code asks for it, and for what no release has beside it, or what no Python here has."""
    known: Known = field(default_factory=Known)
    """What was read of files."""

    @cached_property
    def imports(self) -> CodeImports:
        """What the code imports; raises InputError for a path that is none."""
        return imports_of_code(self.paths)

    @cached_property
    def named(self) -> Set[str]:
        """The packages whose modules the code names at all, each if it were pinned."""
        words = set[str]()
        for path in find_files(self.paths):
            if path.suffix in (".py", ".ipynb"):
                words.update(_WORD.findall(read_text(path) or ""))
        rows = self.matrix.rows(tables.ImportNameRow)
        called = {row.distribution for row in rows if row.module.partition(".")[0] in words}
        return called | {word.lower().replace("_", "-") for word in words}

    def wanted(self, goal: Goal, answer: PinSet) -> list[Wanted]:
        """Return what the pins lack: what code lost first, and where that is nothing what is needed.

        Code stays as it is: what imports of it cannot stand beside it may be had in an older release.
        """
        pinned = {one.name: one.version for one in answer.pins}
        if lost := self._lost(goal, pinned):
            return [_holding(name, found) for name, found in lost.items()]
        needed = needed_by_code(goal, pinned, self.matrix, self.paths)
        if self.reader is not None:
            needed = [*wanted_by_modules(goal, answer, self.matrix, self.reader, self.imports), *needed]
        self.torn.update({one.told: one.told for one in needed if one.is_hopeless})
        return list({one.request.name: one for one in needed if not one.is_hopeless}.values())

    def _lost(self, goal: Goal, pinned: Mapping[str, str]) -> Mapping[str, Found]:
        """Return, by library, the use that ended first among those that releases not judged before lack."""
        fresh = {name: version for name, version in pinned.items() if (name, version) not in self.judged}
        self.judged.update(fresh.items())
        fresh = {name: version for name, version in fresh.items() if name in self.named}
        moves = dict(moves_of_its_time(goal.context.snapshot, fresh))
        whenever = {n: Move(move.new) for n, move in moves.items()}  # a name may have come and gone since
        judged = (
            judge_paths(self.matrix, moves, self.paths, (*NAMED, Kind.KEYWORD), known=self.known),
            judge_paths(self.matrix, whenever, self.paths, NAMED, moves, known=self.known),
        )
        first: dict[str, Found] = {}
        for found in (one for part in judged for one in part.failing if _fails(one)):
            library = found.told.library or distribution_of(self.matrix, found.told.use.path)
            since, known, move = Version(found.told.since), first.get(library), moves.get(library)
            if move is None or (move.old is not None and since <= move.old):
                continue
            if known is not None and since >= Version(known.told.since):
                continue
            record = load_record(self.matrix.folder, library)
            if record is not None and self._may_take(record, found, move):
                continue
            later = self._imported_later(record, library, since) if record is not None else None
            if later is None:
                first[library] = found
            else:
                self.torn[found.told.name] = f"{_lacking(library, found)}; but {later}: no release has both"
        return first

    def _may_take(self, record: Record, found: Found, move: Move) -> bool:
        """True for an argument that something may still take."""
        return found.told.use.kind is Kind.KEYWORD and not refuses(record, found.told.use.path, move.new)

    def _imported_later(self, record: Record, library: str, since: Version) -> str | None:
        """Return what code imports of a library that came with a release, or after it; None for nothing."""
        place = record.place(since)
        for one in self.imports.imports:
            if distribution_of(self.matrix, one.taken.module) != library:
                continue
            spans = recorded_spans(record, one.taken)
            if spans and (came := min(first for first, _ in spans)) >= place:
                name = ".".join(filter(None, (one.taken.module, one.taken.name)))
                return f"{one.place} imports {name}, which came with {record.versions[came]}"
        return None


def _met(
    goal: Goal, answer: PinSet, wanted: Sequence[Wanted], unmet: dict[Request, str], held: list[Wanted]
) -> tuple[Goal, PinSet]:
    """Return the goal and its answer with all that is wanted, else with each that has a place.

    `held` is what the goal has of this by now.
    """
    together = _with(goal, wanted)
    if (served := pin(together)).status == "solved":
        held += wanted
        return together, served
    for one in wanted:
        for way in _ways(one, tried=len(wanted) == 1):
            alone = _with(goal, [way])
            if (served := pin(alone)).status == "solved":
                goal, answer = alone, served
                held.append(way)
                break
        else:
            if instead := _in_place_of_another(goal, one, held):
                goal, answer = instead
            else:
                unmet[one.request] = f"{one.told}; but {one.without}"
    return goal, answer


def _in_place_of_another(goal: Goal, one: Wanted, held: list[Wanted]) -> tuple[Goal, PinSet] | None:
    """Return the goal with what is wanted in place of a bound of that package, and what serves for that."""
    for former in reversed(held):
        alike = former.bounds and former.request.name == one.request.name
        if alike and (other := former.instead()):
            changed = _with(_without(goal, former), [one, other])
            if (served := pin(changed)).status == "solved":
                held[:] = [*(each for each in held if each is not former), one, other]
                return changed, served
    return None


def _ways(one: Wanted, tried: bool) -> Iterator[Wanted]:
    """Yield what may serve: what is wanted, if it was not tried, and what does in its place."""
    if not tried:
        yield one
    if other := one.instead():
        yield other


def _with(goal: Goal, wanted: Sequence[Wanted]) -> Goal:
    """Return the goal with requests and bounds."""
    options = goal.context.options
    bounds = tuple(one.request for one in wanted if one.bounds)
    wider = replace(
        goal,
        requests=(*goal.requests, *(one.request for one in wanted if not one.bounds)),
        notes=(*goal.notes, *(one.told for one in wanted)),
    )
    return wider.on(goal.context.target, replace(options, constraints=(*options.constraints, *bounds)))


def _without(goal: Goal, bound: Wanted) -> Goal:
    """Return the goal without a bound that it has."""
    options = goal.context.options
    left = tuple(one for one in options.constraints if one is not bound.request)
    freer = replace(goal, notes=tuple(one for one in goal.notes if one != bound.told))
    return freer.on(goal.context.target, replace(options, constraints=left))


def _fails(found: Found) -> bool:
    """True for what fails for certain once a file is imported, or a call made."""
    kind, certain = found.told.use.kind, found.told.certainty is Certainty.CERTAIN
    sure = (certain and kind in NAMED) or kind is Kind.KEYWORD
    return sure and bool(found.told.since) and Path(found.file).suffix in (".py", ".ipynb")


def _holding(name: str, found: Found) -> Wanted:
    """Return the bound that leaves out the releases that lost something."""
    bound = f"<{found.told.since}"
    return Wanted(Request(name, (), bound, _place(found)), _lacking(f"{name}{bound}", found), bounds=True)


def _lacking(what: str, found: Found) -> str:
    return f"{what}: {_place(found)} asks for {found.told.name}, which {found.told.since} has no more"


def _place(found: Found) -> str:
    return f"{found.file}, line {found.told.use.place.line}"
