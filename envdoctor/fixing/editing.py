"""A plan for what a file requires, written into that file: its diff, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envdoctor.diagnosis import PlanWish, diagnose_facts, read_facts
from envdoctor.findings import Diagnosis, Plan
from envdoctor.fixing.fixing import SCHEMA
from envdoctor.fixing.lockfiles import difference, edited, read_file, write_file
from envdoctor.fixing.verifying import left
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes.files import parse_text
from envdoctor.target.cards import declare_gpus
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Edited:
    """What a file's plan changes in it: `status` is nothing, shown or written."""

    status: str
    file: str
    diff: str
    plan: Plan | None
    after: Diagnosis
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 nothing to do, or written and nothing found in it any more; else 1."""
        return 1 if left(self.after) or self.notes or self.status == "shown" else 0

    def to_json(self) -> dict[str, Any]:
        """Return it in the terms of `envdoctor.fix/1`."""
        return {
            "schema": SCHEMA,
            "status": self.status,
            "file": self.file,
            "diff": self.diff,
            "plan": self.plan.to_json() if self.plan else None,
            "remaining": list(dict.fromkeys(finding.id for finding in left(self.after))),
            "notes": list(self.notes),
            "exit_code": self.exit_code,
        }


def edit_file(
    name: str,
    *,
    apply: bool = False,
    gpus: Sequence[str] = (),
    wish: PlanWish | None = None,
    matrix: Matrix | None = None,
) -> Edited:
    """Plan for what a file requires, on `gpus` if those are declared; with `apply` write the plan into it.

    Raises InputError for a file that cannot be read, Unavailable where it cannot be written.
    """
    matrix = matrix or load_matrix()
    path = Path(name)
    text = read_file(path)
    facts = declare_gpus(read_facts([name], None, matrix), gpus, matrix)
    before = diagnose_facts(facts, matrix, wish=wish)
    moves = before.plan.moves if before.plan and left(before) else ()
    new, lost = edited(text, path.name, moves)
    if new == text:
        return Edited("nothing", name, "", before.plan, before, lost)
    if apply:
        write_file(path, text, new)
    changed = declare_gpus(parse_text(new, path.name, matrix.lexicon, path.parent), gpus, matrix)
    after = diagnose_facts(changed, matrix, complete=False)
    status = "written" if apply else "shown"
    return Edited(status, name, difference(path, text, new), before.plan, after, lost)
