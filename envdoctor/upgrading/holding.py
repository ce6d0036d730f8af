"""Pins for code as it stands: what it imports is there and imports, and no release lost what it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from envdoctor.findings import Certainty
from envdoctor.matrix import Matrix
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.solve.answer import PinSet
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin
from envdoctor.solve.requests import Request
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.needing import Wanted, wanted_by_modules
from envdoctor.upgrading.submodules import needed_by_code
from envdoctor.upgrading.upgrading import Found, judge_paths, moves_of_its_time
from envdoctor.upgrading.uses import NAMED, Kind

ROUNDS = 5
"""How often an answer may bring releases that lost, or need, something else."""


def pinned_for_code(goal: Goal, answer: PinSet, matrix: Matrix, paths: Sequence[str]) -> PinSet:
    """Return pins under which what the code asks for stands; what cannot be had is noted.

    `answer` is the goal's whatever the code; without code what was looked up is to be imported. Raises
    InputError for a path that is none.
    """
    asked, unmet = len(goal.requests), dict[Request, str]()
    for _ in range(ROUNDS):
        if answer.status != "solved":
            break
        wanted = [one for one in _wanted(goal, answer, matrix, paths) if one.request not in unmet]
        if not wanted:
            break
        goal, answer = _met(goal, answer, wanted, unmet)
    besides = tuple(map(str, goal.requests[asked:]))
    return replace(answer, notes=(*answer.notes, *unmet.values()), besides=besides)


def _wanted(goal: Goal, answer: PinSet, matrix: Matrix, paths: Sequence[str]) -> list[Wanted]:
    """Return what the pins lack: what is needed first, and where nothing is what code lost."""
    pinned = {one.name: one.version for one in answer.pins}
    needed = (*wanted_by_modules(goal, answer, matrix, paths), *needed_by_code(goal, pinned, matrix, paths))
    if needed:
        return list({one.request.name: one for one in needed}.values())
    lost = _lost(goal, answer, matrix, paths)
    return [_holding(name, found) for name, found in lost.items()]


def _met(
    goal: Goal, answer: PinSet, wanted: Sequence[Wanted], unmet: dict[Request, str]
) -> tuple[Goal, PinSet]:
    """Return the goal and its answer with all that is wanted, else with each that has a place."""
    together = _with(goal, wanted)
    if (served := pin(together)).status == "solved":
        return together, served
    for one in wanted:
        alone = _with(goal, [one])
        if len(wanted) > 1 and (served := pin(alone)).status == "solved":
            goal, answer = alone, served
        else:
            unmet[one.request] = f"{one.told}; but {one.without}"
    return goal, answer


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


def _lost(goal: Goal, answer: PinSet, matrix: Matrix, paths: Sequence[str]) -> Mapping[str, Found]:
    """Return, by library, the use that ended first among those that the pinned releases do not have."""
    moves = dict(moves_of_its_time(goal.context.snapshot, {one.name: one.version for one in answer.pins}))
    whenever = {name: Move(move.new) for name, move in moves.items()}  # a name may have come and gone since
    judged = (
        judge_paths(matrix, moves, paths, (*NAMED, Kind.KEYWORD)),
        judge_paths(matrix, whenever, paths, NAMED, moves),
    )
    first: dict[str, Found] = {}
    for found in (one for part in judged for one in part.failing if _fails(one)):
        library = found.told.library or distribution_of(matrix, found.told.use.path)
        since, known = Version(found.told.since), first.get(library)
        old = moves[library].old if library in moves else None
        if (old is None or since > old) and (known is None or since < Version(known.told.since)):
            first[library] = found
    return first


def _fails(found: Found) -> bool:
    """True for what fails for certain once a file is imported, or a call made."""
    kind, certain = found.told.use.kind, found.told.certainty is Certainty.CERTAIN
    sure = (certain and kind in NAMED) or kind is Kind.KEYWORD
    return sure and bool(found.told.since) and Path(found.file).suffix in (".py", ".ipynb")


def _holding(name: str, found: Found) -> Wanted:
    """Return the bound that leaves out the releases that lost something."""
    since, place = found.told.since, f"{found.file}, line {found.told.use.place.line}"
    told = f"{name}<{since}: {place} asks for {found.told.name}, which {since} has no more"
    return Wanted(Request(name, (), f"<{since}", place), told, bounds=True)
