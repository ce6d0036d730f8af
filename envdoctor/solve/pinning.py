"""The public door of the room: a goal in, pins or an explained conflict out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from envdoctor.solve.answer import Cause, PinSet, asked_words, solved
from envdoctor.solve.reasons import Explained
from envdoctor.solve.requests import Carried
from envdoctor.solve.solver import Goal, Picks, solve

if TYPE_CHECKING:
    from envdoctor.solve.explain import Reason


WIDENINGS = 3
"""How often an answer may lead to packages that must be looked up."""


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
    goal, picks = solve_covered(goal)
    if picks is not None:
        return solved(goal, picks)
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import clash
    from envdoctor.solve.relax import relaxations, split

    reasons = clash(goal) or []
    if (rest := without_unread(goal, reasons)) is not None:
        return pin(rest)
    sets = split(goal, reasons)
    return PinSet(
        "split" if sets else "unknown" if hangs_on_the_unread(reasons) else "conflict",
        goal.context.target,
        asked_words(goal),
        causes=causes_of(goal, reasons),
        relaxations=relaxations(goal, reasons),
        sets=sets,
        carried=goal.carried,
        options=goal.options,
    )


def solve_covered(goal: Goal) -> tuple[Goal, Picks | None]:
    """Solve; look up what the answer requires and the facts do not cover, and solve again."""
    picks = solve(goal)
    for _ in range(WIDENINGS):
        if picks is None or goal.coverage is None:
            break
        missing = Explained(goal, picks).uncovered
        if not missing or not goal.coverage.widen(missing):
            break
        goal = goal.widened()
        picks = solve(goal)
    return goal, picks


def why_not(goal: Goal) -> WhyNot:
    """Return the minimal causes against a goal; none when an answer exists. Raises Unavailable."""
    goal, picks = solve_covered(goal)
    if picks is not None:
        return WhyNot((), False)
    from envdoctor.solve.causes import causes_of
    from envdoctor.solve.explain import clash

    reasons = clash(goal) or []
    return WhyNot(causes_of(goal, reasons), None if hangs_on_the_unread(reasons) else True)


def without_unread(goal: Goal, reasons: Sequence[Reason]) -> Goal | None:
    """Carry the requests that nothing but unread requirements stand against; None when no other is left."""
    unread = {reason.name for reason in reasons if reason.ban is not None and reason.ban.what == "unread"}
    lost = [request for request in goal.requests if request.name in unread]
    left = tuple(request for request in goal.requests if request.name not in unread)
    if not lost or not left:
        return None
    why = "what it requires is not known (--allow-source takes it as if it required nothing)"
    carried = tuple(Carried(r.line or str(r), r.source, why) for r in lost)
    return replace(goal, requests=left, carried=(*goal.carried, *carried))


def hangs_on_the_unread(reasons: Sequence[Reason]) -> bool:
    """True when one of the reasons, all of which are needed, is that requirements could not be read."""
    return any(reason.ban is not None and reason.ban.what == "unread" for reason in reasons)
