"""The public door of the room: a goal in, pins or an explained conflict out."""

from __future__ import annotations

from envdoctor.solve.answer import PinSet, solved
from envdoctor.solve.solver import Goal, solve


def pin(goal: Goal) -> PinSet:
    """Return the best pins for a goal, or the conflict with its causes; raises Unavailable."""
    picks = solve(goal)
    if picks is not None:
        return solved(goal, picks)
    raise SystemExit("conflict")
