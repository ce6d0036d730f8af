"""The public door of the room: a goal in, pins or an explained conflict out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from envdoctor.solve.answer import Cause, PinSet, solved
from envdoctor.solve.solver import Goal, solve

if TYPE_CHECKING:
    from envdoctor.solve.explain import Reason


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What forbids a request; no causes: nothing does. `forbidden` None: it hangs on what is not known."""

    causes: tuple[Cause, ...]
    forbidden: bool | None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "schema": "envdoctor.why-not/1",
            "forbidden": self.forbidden,
            "causes": [cause.as_json() for cause in self.causes],
        }


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
        "split" if sets else "unknown" if hangs_on_the_unread(reasons) else "conflict",
        goal.context.target,
        asked,
        causes=causes_of(goal, reasons),
        relaxations=relaxations(goal, reasons),
        sets=sets,
    )


def why_not(goal: Goal) -> WhyNot:
    """Return the minimal causes against a goal; none when an answer exists. Raises Unavailable."""
    if solve(goal) is not None:
        return WhyNot((), False)
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import clash

    reasons = clash(goal) or []
    return WhyNot(causes_of(goal, reasons), None if hangs_on_the_unread(reasons) else True)


def hangs_on_the_unread(reasons: Sequence[Reason]) -> bool:
    """True when one of the reasons, all of which are needed, is that requirements could not be read."""
    return any(reason.ban is not None and reason.ban.what == "unread" for reason in reasons)
