"""The one best answer of few choices, found by trying them: clingo takes longer to load than that takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envdoctor.solve.policy import Cost, Policy, total
from envdoctor.solve.problem import Literal, Problem, bits_down, bits_of

MANY = 40
"""Of more candidates than these the engine is the shorter way."""
STEPS = 200
"""So many choices are made before the engine is."""


class TooMany(Exception):
    """The choices are more than may be tried."""


def is_small(problem: Problem) -> bool:
    """True for few candidates, none of which is a pre-release that only another's pin may pick."""
    few = sum(mask.bit_count() for mask in problem.masks.values()) <= MANY
    return few and not any(problem.node(name).reserved & mask for name, mask in problem.masks.items())


def only_best(problem: Problem, policy: Policy) -> dict[str, int] | None:
    """Return the one best choice of a small problem; None where there is none, or several are as good.

    Raises TooMany.
    """
    masks = {**problem.masks}
    for root in problem.roots:
        masks[root.name] &= root.mask
    for name, mask, _ in problem.bans:
        masks[name] = masks.get(name, 0) & ~mask
    search = _Search(problem, policy, masks)
    search.choose(masks, {(root.name, one) for root in problem.roots for one in ("", *root.extras)}, {})
    return search.best[0] if len(search.best) == 1 else None


class _Search:
    """Chooses package by package, and leaves a choice where what is left costs more than the best known."""

    def __init__(self, problem: Problem, policy: Policy, masks: Mapping[str, int]) -> None:
        self.problem = problem
        self.prices = {
            name: {bit: policy.cost(problem.node(name), bit) for bit in bits_of(mask)}
            for name, mask in masks.items()
        }
        self.best: list[dict[str, int]] = []
        self.least: Cost | None = None
        self.steps = 0

    def choose(self, left: Mapping[str, int], wanted: set[tuple[str, str]], bits: Mapping[str, int]) -> None:
        """Try each candidate of that with the fewest left; `wanted` are the packages there, and extras."""
        self.steps += 1
        if self.steps > STEPS:
            raise TooMany
        if self.least is not None and self._bound(left, wanted) > self.least:
            return
        names = [name for name, extra in wanted if not extra and name not in bits]
        if not names:
            if not any(_forbids(one.literals, bits) for one in self.problem.nogoods):
                self._keep(bits)
            return
        name = min(names, key=lambda one: (left[one].bit_count(), one))
        for bit in bits_down(left[name]):
            rest, now = {**left, name: 1 << bit}, {**bits, name: bit}
            further = self._follow(rest, wanted, now, [pair for pair in wanted if pair[0] == name])
            if all(rest[one] for one, _ in further):
                self.choose(rest, further, now)

    def _follow(
        self,
        left: dict[str, int],
        wanted: set[tuple[str, str]],
        bits: Mapping[str, int],
        todo: list[tuple[str, str]],
    ) -> set[tuple[str, str]]:
        """Narrow what is left to what some choices accept; return what is wanted with them."""
        found = {*wanted}
        while todo:
            name, extra = todo.pop()
            for part in self.problem.parts.get((name, extra), ()):
                for demand in part.demands if part.mask >> bits[name] & 1 else ():
                    if demand.name in left:
                        left[demand.name] &= demand.mask
                        asked = () if demand.limit else ("", *demand.extras)
                        new = {(demand.name, one) for one in asked} - found
                        found |= new
                        todo += new if demand.name in bits else ()
        return found

    def _bound(self, left: Mapping[str, int], wanted: Iterable[tuple[str, str]]) -> Cost:
        """Return what is left costs at least."""
        there = (name for name, extra in wanted if not extra)
        return total([min(self.prices[name][bit] for bit in bits_of(left[name])) for name in there])

    def _keep(self, bits: Mapping[str, int]) -> None:
        cost = total([self.prices[name][bit] for name, bit in bits.items()])
        if self.least is None or cost < self.least:
            self.best, self.least = [], cost
        self.best += [dict(bits)] if cost == self.least else []


def _forbids(literals: Iterable[Literal], bits: Mapping[str, int]) -> bool:
    """True when all conditions of a row hold, as the engine reads them of what the problem has."""
    return all(one.holds(bits) for one in literals)
