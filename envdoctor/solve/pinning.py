"""The public door of the room: a goal in, pins or an explained conflict out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envdoctor.solve.answer import Cause, PinSet, solved
from envdoctor.solve.solver import Goal, solve


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What forbids a request; no causes: nothing does."""

    causes: tuple[Cause, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "schema": "envdoctor.why-not/1",
            "forbidden": bool(self.causes),
            "causes": [cause.as_json() for cause in self.causes],
        }

    def text(self) -> str:
        """Return the answer as a person reads it."""
        if not self.causes:
            return "nothing forbids it\n"
        return "".join(f"- {cause.text}\n    {cause.kind}: {cause.source}\n" for cause in self.causes)


def pin(goal: Goal) -> PinSet:
    """Return the best pins for a goal, or the conflict with its causes; raises Unavailable."""
    picks = solve(goal)
    if picks is not None:
        return solved(goal, picks)
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import clash
    from envdoctor.solve.relax import relaxations, split

    reasons = clash(goal) or []
    sets = split(goal, reasons)
    asked = tuple(dict.fromkeys(str(request) for request in goal.requests))
    return PinSet(
        "split" if sets else "conflict",
        goal.context.target,
        asked,
        causes=causes_of(goal, reasons),
        relaxations=relaxations(goal, reasons),
        sets=sets,
    )


def why_not(goal: Goal) -> WhyNot:
    """Return the minimal causes against a goal; none when an answer exists. Raises Unavailable."""
    if solve(goal) is not None:
        return WhyNot(())
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import clash

    return WhyNot(causes_of(goal, clash(goal) or []))
