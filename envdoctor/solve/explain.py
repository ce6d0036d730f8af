"""Why there is no answer: a minimal set of causes, found by switching reasons off one at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from envdoctor.solve.goal import Goal, request_mask
from envdoctor.solve.nodes import Ban
from envdoctor.solve.problem import Nogood, Problem, Root, close
from envdoctor.solve.prune import prune
from envdoctor.solve.requests import Request
from envdoctor.solve.rows import nogoods
from envdoctor.values import dataclass

DEPTHS = (0, 1, 2, 4, None)
"""How far from what was asked for a clash is looked for, nearest first: near causes tell a person most."""

_LEAST_TELLING = (
    "yanked",
    "prerelease",
    "source",
    "platform",
    "unread",
    "newer",
    "python",
    "pair",
    "edge",
    "row",
)
"""Kinds of reasons, the ones a person would rather not hear of first (hardware and requests come last)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Something that can be switched off: a request, a ban, a package's demand on another, a matrix row."""

    kind: str
    request: Request | None = None
    name: str = ""
    ban: Ban | None = None
    target: str = ""
    nogood: Nogood | None = None


class Inquiry:
    """A goal with every reason numbered, ready to be asked which of them clash."""

    def __init__(self, goal: Goal, depth: int | None) -> None:
        self.goal = goal
        self.reasons: dict[int, Reason] = {}
        self.edges: dict[tuple[str, str], int] = {}
        self.problem = self._problem(depth)
        prune(self.problem, None)
        from envdoctor.solve.engine import Engine

        self.engine = Engine(self.problem, None, sorted(self.reasons), self.edges)

    def clashes(self) -> bool:
        """True when all the reasons together allow no answer."""
        return self.engine.clashes(self.reasons)

    def minimal(self) -> list[Reason] | None:
        """Return reasons that clash and of which none can be spared; None when nothing clashes."""
        if not self.clashes():
            return None
        return self._told(self._least(self.reasons))

    def others(self, told: Collection[Reason]) -> list[list[Reason]]:
        """Return further minimal sets: what clashes still when one of those told is left out."""
        found: list[list[int]] = []
        for left in (number for number, reason in self.reasons.items() if reason in told):
            rest = [number for number in self.reasons if number != left]
            if all(left in one for one in found) and self.engine.clashes(rest):
                found.append(self._least(rest))
        return [self._told(one) for one in found]

    def _least(self, numbers: Iterable[int]) -> list[int]:
        """Return of reasons that clash as many as are needed, the most telling ones."""
        return self._narrow([], False, sorted(numbers, key=self._rank, reverse=True))

    def _told(self, numbers: Iterable[int]) -> list[Reason]:
        return [self.reasons[number] for number in sorted(numbers)]

    def _narrow(self, background: list[int], added: bool, order: list[int]) -> list[int]:
        """Return the part of `order` that a clash with `background` needs, telling reasons (first) preferred.

        QuickXplain: halve, find what the second half must add to the first, then the reverse.
        """
        if added and self.engine.clashes(background):
            return []
        if len(order) == 1:
            return order
        half = len(order) // 2
        first, second = order[:half], order[half:]
        from_second = self._narrow([*background, *first], True, second)
        from_first = self._narrow([*background, *from_second], bool(from_second), first)
        return [*from_first, *from_second]

    def _rank(self, number: int) -> tuple[int, int]:
        kind = self.reasons[number].kind
        place = _LEAST_TELLING.index(kind) if kind in _LEAST_TELLING else len(_LEAST_TELLING)
        return (place, -number)

    def _number(self, reason: Reason) -> int:
        number = len(self.reasons) + 1
        self.reasons[number] = reason
        return number

    def _problem(self, depth: int | None) -> Problem:
        context = self.goal.context
        roots = [
            Root(
                r.name,
                request_mask(context, r),
                r.extras,
                self._number(Reason("request", request=r, name=r.name)),
            )
            for r in self.goal.requests
        ]
        asked = {request.name for request in self.goal.requests}
        for name in self.goal.kept:
            node = context.node(name)
            if node is not None and name not in asked:
                roots.append(Root(name, node.all, (), 0))
        problem = close(context, roots, _Candidates(self.goal), depth)
        for name in sorted(problem.masks):
            self._add_bans(problem, name)
        problem.nogoods = [
            nogood._replace(guard=self._number(Reason(_kind_of(nogood), nogood=nogood)))
            for nogood in nogoods(context, problem.masks.keys())
        ]
        for part in problem.every_part():
            for demand in part.demands:
                if demand.name in problem.masks and (part.name, demand.name) not in self.edges:
                    edge = Reason("edge", name=part.name, target=demand.name)
                    self.edges[part.name, demand.name] = self._number(edge)
        return problem

    def _add_bans(self, problem: Problem, name: str) -> None:
        for ban in problem.node(name).bans:
            if ban.mask & problem.masks[name]:
                number = self._number(Reason(ban.what, name=name, ban=ban))
                problem.bans.append((name, ban.mask, number))


def _kind_of(nogood: Nogood) -> str:
    return "pair" if nogood.row.startswith("PAIR-") and nogood.row[-1:].isdigit() else "row"


class _Candidates(Mapping[str, int]):
    """By name: every candidate, also those ruled out, but pre-releases and yanked ones ruled out twice."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal

    def __getitem__(self, name: str) -> int:
        node = self.goal.context.node(name)
        if node is None:
            raise KeyError(name)
        seldom = sum_masks(ban.mask for ban in node.bans if ban.what in ("yanked", "prerelease"))
        others = sum_masks(ban.mask for ban in node.bans if ban.what not in ("yanked", "prerelease"))
        return node.all & ~(seldom & others)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def sum_masks(masks: Iterable[int]) -> int:
    """Return the union of masks."""
    union = 0
    for mask in masks:
        union |= mask
    return union


def clash(goal: Goal) -> list[Reason] | None:
    """Return a minimal set of reasons against a goal, the nearest found; None when nothing forbids it."""
    return next(conflicts(goal), None)


def conflicts(goal: Goal) -> Iterator[list[Reason]]:
    """Yield minimal sets of reasons against a goal: the nearest, then what stands without one of it as well.

    Those are looked for as near as the first, and at least a step from what was asked for; each is worked out
    when it is asked for.
    """
    for depth in DEPTHS:
        inquiry = Inquiry(goal, depth)
        reasons = inquiry.minimal()
        if reasons is not None:
            yield reasons
            yield from (Inquiry(goal, 1) if depth == 0 else inquiry).others(reasons)
            return
