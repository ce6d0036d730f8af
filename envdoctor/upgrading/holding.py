"""Pins for code as it stands: no release that lost what the code asks for, as far as another will do."""

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
from envdoctor.upgrading.submodules import needed_by_code
from envdoctor.upgrading.upgrading import Found, judge_paths, moves_of_its_time
from envdoctor.upgrading.uses import NAMED, Kind

ROUNDS = 4
"""How often an answer may bring releases that lost something else."""


def pinned_for_code(goal: Goal, matrix: Matrix, paths: Sequence[str]) -> PinSet:
    """Return pins under which what the code asks for stands; what cannot be held is noted.

    Raises InputError for a path that is none.
    """
    asked = len(goal.requests)
    goal, answer = _with_needed(goal, matrix, paths)
    unheld = dict[str, str]()
    for _ in range(ROUNDS):
        lost = _lost(goal, answer, matrix, paths) if answer.status == "solved" else {}
        new = {name: found for name, found in lost.items() if name not in unheld}
        if not new:
            break
        held = _holding(goal, new)
        together = pin(held)
        if together.status == "solved":
            goal, answer = held, together
            continue
        for name, found in new.items():
            held = _holding(goal, {name: found})
            alone = pin(held)
            if alone.status == "solved":
                goal, answer = held, alone
            else:
                unheld[name] = f"{_told(name, found)}; but no older release fits what was asked for"
    besides = tuple(map(str, goal.requests[asked:]))
    return replace(answer, notes=(*answer.notes, *unheld.values()), besides=besides)


def _with_needed(goal: Goal, matrix: Matrix, paths: Sequence[str]) -> tuple[Goal, PinSet]:
    """Return the goal and its answer, with what the code needs where that has a place beside the rest."""
    answer = pin(goal)
    pinned = {one.name: one.version for one in answer.pins}
    needed = needed_by_code(goal, pinned, matrix, paths) if answer.status == "solved" else {}
    if not needed:
        return goal, answer
    wider = replace(goal, requests=(*goal.requests, *needed), notes=(*goal.notes, *needed.values()))
    wider = wider.on(goal.context.target, goal.context.options)
    if (served := pin(wider)).status == "solved":
        return wider, served
    unserved = tuple(f"{told}; but it has no place beside what was asked for" for told in needed.values())
    return goal, replace(answer, notes=(*answer.notes, *unserved))


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


def _holding(goal: Goal, lost: Mapping[str, Found]) -> Goal:
    """Return the goal without the releases that lost something."""
    bounds = (Request(name, (), f"<{one.told.since}", _place(one)) for name, one in lost.items())
    options = goal.context.options
    held = goal.on(goal.context.target, replace(options, constraints=(*options.constraints, *bounds)))
    return replace(held, notes=(*goal.notes, *(_told(name, found) for name, found in lost.items())))


def _told(name: str, found: Found) -> str:
    since = found.told.since
    return f"{name}<{since}: {_place(found)} asks for {found.told.name}, which {since} has no more"


def _place(found: Found) -> str:
    return f"{found.file}, line {found.told.use.place.line}"
