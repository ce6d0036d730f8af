"""The way of a fix: clone, carry out, look again, exchange; whatever fails, the original is as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from envdoctor.diagnosis import PlanWish, diagnose
from envdoctor.errors import Unavailable
from envdoctor.findings import Diagnosis, Plan
from envdoctor.fixing.carrying_out import (
    Call,
    Carrier,
    calls_of,
    check_within,
    clear_damage,
    clear_leftovers,
    retarget,
)
from envdoctor.fixing.copying import copy_tree
from envdoctor.fixing.refusals import check_changeable
from envdoctor.fixing.states import Shelf, State
from envdoctor.fixing.verifying import (
    check_better,
    check_nothing_lost,
    check_own_place,
    check_smoked,
    examine,
    failing_imports,
    left,
)
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.values import dataclass

ROUNDS = 3
"""How often what is found on the clone is planned and carried out anew."""
SCHEMA = "envdoctor.fix/1"
Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a fix did or would do: `status` is nothing, shown, mended, partly or undone."""

    status: str
    environment: str
    before: Diagnosis | None = None
    after: Diagnosis | None = None
    state: State | None = None
    notes: tuple[str, ...] = ()
    elsewhere: bool = False
    """True where a text was examined: the plan is for the machine that it tells of."""

    @property
    def plan(self) -> Plan | None:
        """The plan that was shown or carried out."""
        return self.before.plan if self.before else None

    @property
    def exit_code(self) -> int:
        """0 mended, undone or nothing to do; 1 where something remains."""
        return 0 if self.status in ("nothing", "mended", "undone") else 1

    def to_json(self) -> dict[str, Any]:
        """Return it in the terms of `envdoctor.fix/1`."""
        judged = self.after or self.before
        remaining = left(judged) if judged else ()
        return {
            "schema": SCHEMA,
            "status": self.status,
            "environment": self.environment,
            "plan": self.plan.to_json() if self.plan else None,
            "state": self.state.number if self.state else None,
            "remaining": list(dict.fromkeys(f.id for f in remaining)) if self.status != "undone" else [],
            "notes": list(self.notes),
            "exit_code": self.exit_code,
        }


def show_fix(
    python: str | None,
    matrix: Matrix | None = None,
    *,
    sources: Sequence[str] = (),
    gpus: Sequence[str] = (),
    wish: PlanWish | None = None,
    online: bool = False,
) -> Fixed:
    """Return what a fix would do to the examined environment, every file of its packages looked at.

    With `sources` it is the plan for what those files tell, on `gpus` where the cards are declared. `online`
    asks the package index what the plan downloads.
    """
    if sources:
        told = diagnose(sources, gpus=gpus, wish=wish, online=online)
        return Fixed("shown" if left(told) else "nothing", told.examined.source, told, elsewhere=True)
    matrix = matrix or load_matrix()
    before = examine(_named(python), matrix, wish=wish)
    if online:
        from envdoctor.online import with_download

        before = with_download(before, matrix)
    folder = before.facts.environment.prefix.get() or "not told"
    return Fixed("shown" if left(before) else "nothing", folder, before)


def apply_fix(
    python: str | None,
    *,
    smoke: bool = False,
    matrix: Matrix | None = None,
    wish: PlanWish | None = None,
    step: Step = lambda _: None,
) -> Fixed:
    """Mend an environment on a clone and exchange the two; raises Unavailable, then nothing was changed."""
    matrix = matrix or load_matrix()
    step("looking at the environment")
    before = examine(_named(python), matrix, wish=wish)
    if not left(before):
        return Fixed("nothing", before.facts.environment.prefix.get() or "", before)
    folder = check_changeable(before.facts)
    if not _something_to_do(before):
        return Fixed("partly", str(folder), before, before, notes=("nothing of it is a matter of packages",))
    shelf = Shelf(folder)
    with shelf.held():
        try:
            return _exchanged(shelf, before, _Way(matrix, smoke, wish, step, shelf.lock))
        finally:
            shelf.discard()


def undo_fix(python: str | None, number: int | None = None) -> Fixed:
    """Go back to a former state (None: the last); raises Unavailable where none is kept."""
    shelf = _shelf_of(_named(python))
    with shelf.held() as went_back:
        if went_back and number is None:
            return Fixed(
                "undone", str(shelf.environment), notes=("a change that was cut short is taken back",)
            )
        state = shelf.go_back(number)
    return Fixed("undone", str(shelf.environment), state=state)


def _shelf_of(python: str) -> Shelf:
    """Return the shelf beside an interpreter's environment, by its path: a broken one can be undone, too."""
    path = Path(os.path.abspath(os.path.expanduser(shutil.which(python) or python)))
    folders = [Path(os.path.realpath(folder)) for folder in (path, path.parent.parent)]
    shelves = [Shelf(folder) for folder in folders if folder.name]
    for shelf in shelves:
        if shelf.folder.is_dir():
            return shelf
    raise Unavailable(f"fix --undo: no former state of {folders[-1]} is kept")


def _named(python: str | None) -> str:
    from envdoctor.target.stack import active_python

    return python or active_python()


def _something_to_do(diagnosis: Diagnosis) -> bool:
    python = diagnosis.facts.environment.executable.get() or ""
    return bool(diagnosis.plan and any(calls_of(diagnosis.plan, python)))


@dataclass(frozen=True, slots=True)
class _Way:
    """How a fix is to go: what is known, whether kernels prove it, what the user wishes, who is told."""

    matrix: Matrix
    smoke: bool
    wish: PlanWish | None
    step: Step
    lock: int | None

    def look(self, python: str, smoke: bool = False) -> Diagnosis:
        """Diagnose an environment."""
        self.step("running the smoke kernels" if smoke else "looking at the clone")
        return examine(python, self.matrix, smoke, self.wish)


def _exchanged(shelf: Shelf, before: Diagnosis, way: _Way) -> Fixed:
    clone, folder = shelf.clone, shelf.environment
    _clone(shelf, way)
    executable = before.facts.environment.executable.get() or ""
    python = str(clone / Path(executable).relative_to(_prefix(before)))
    check_own_place(python, clone)
    retarget(clone, folder, clone, scripts=False)
    work = _proven(_mended(python, clone, way), before, python, way)
    if way.smoke:
        after = way.look(python, smoke=True)
        check_smoked(after, lambda: way.look(executable, smoke=True))
        work = replace(work, after=after)
    if work.managed:
        return _done_again(shelf, before, executable, way)
    retarget(clone, clone, folder)
    way.step("exchanging the two")
    return work.fixed(before, folder, shelf.take(tuple(work.changed)))


def _done_again(shelf: Shelf, before: Diagnosis, executable: str, way: _Way) -> Fixed:
    """Do what was proven on the clone in a fresh copy at the environment's own place.

    Conda writes that place into files of its packages: no copy that was changed elsewhere can be moved there.
    """
    _clone(shelf, way)
    way.step("doing at its own place what the clone has proven")
    with shelf.standing_in():
        work = _proven(_mended(executable, shelf.environment, way), before, executable, way)
        return work.fixed(before, shelf.environment, shelf.keep(tuple(work.changed)))


def _clone(shelf: Shelf, way: _Way) -> None:
    way.step("cloning it")
    shelf.discard()
    copy_tree(shelf.environment, shelf.clone)


@dataclass(frozen=True, slots=True)
class _Work:
    """What was carried out on a copy: its diagnosis then, what moved, whether conda or its kin moved it."""

    after: Diagnosis
    changed: Sequence[str]
    managed: bool

    def fixed(self, before: Diagnosis, folder: Path, state: State) -> Fixed:
        """Return it as what a fix did."""
        return Fixed("partly" if left(self.after) else "mended", str(folder), before, self.after, state)


def _mended(python: str, clone: Path, way: _Way) -> _Work:
    """Carry out on the clone what its diagnosis plans, until nothing is left."""
    changed: list[str] = []
    managed = False
    after = way.look(python)
    clear_leftovers(after.facts, clone)
    for _ in range(ROUNDS):
        calls = list(calls_of(after.plan, python)) if after.plan else []
        if not calls:
            break
        changed += _carried_out(after, calls, python, clone, way)
        managed = managed or any(call.manager for call in calls)
        after = way.look(python)
        if not left(after):
            break
    return _Work(after, changed, managed)


def _proven(work: _Work, before: Diagnosis, python: str, way: _Way) -> _Work:
    """Return the work; raises Unavailable where it mends nothing, or takes out or breaks what was there."""
    check_better(before, work.after)
    names = [change.partition(" ")[0] for change in work.changed]
    if work.managed:
        check_nothing_lost(before.facts, work.after.facts, names)
    if failing := failing_imports(python, work.after.facts, names):
        raise Unavailable(f"fix: what changed cannot be imported, nothing was changed: {failing[0]}")
    return work


def _prefix(diagnosis: Diagnosis) -> Path:
    return Path(diagnosis.facts.environment.prefix.get() or "/")


def _carried_out(
    diagnosis: Diagnosis, calls: Sequence[Call], python: str, clone: Path, way: _Way
) -> list[str]:
    """Carry out the calls of a diagnosis' plan on the clone and return what moved, in words."""
    moves = diagnosis.plan.moves if diagnosis.plan else ()
    listed = diagnosis.facts.environment.distributions
    damaged = [m.name for m in moves if m.name in listed and (m.old == m.new or listed[m.name].problems)]
    carrier = Carrier(python, clone, "pip" in listed, way.lock)
    check_within(diagnosis.facts, [move.name for move in moves], clone)
    clear_damage(diagnosis.facts, [name for name in damaged if name != "pip"], clone)
    for call in calls:
        way.step(f"carrying out: {call.verb}")
        carrier.run(call)
    return [f"{m.name} {m.old or 'new'} → {m.new or 'removed'}" for m in moves]
