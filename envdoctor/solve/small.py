"""The one best answer of few choices, found by trying them: clingo takes longer to load than that takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from envdoctor.solve.policy import Policy, total
from envdoctor.solve.problem import Literal, Problem, bits_of

MANY = 2000
"""Of more combinations than these the engine is the shorter way."""


def is_small(problem: Problem) -> bool:
    """True for few choices among packages that every answer holds, without extras and pre-releases."""
    plain = problem.masks.keys() <= problem.sure and not any(extra for _, extra in problem.parts)
    few = plain and prod(mask.bit_count() for mask in problem.masks.values()) <= MANY
    return few and not any(problem.node(name).reserved & mask for name, mask in problem.masks.items())


def only_best(problem: Problem, policy: Policy) -> dict[str, int] | None:
    """Return the one best choice of a small problem; None where there is none, or several are as good."""
    priced = [
        (total([policy.cost(problem.node(name), bit) for name, bit in bits.items()]), bits)
        for bits in _standing(problem)
    ]
    least = min((cost for cost, _ in priced), default=None)
    best = [bits for cost, bits in priced if cost == least]
    return best[0] if len(best) == 1 else None


def _standing(problem: Problem) -> Iterator[dict[str, int]]:
    """Yield the choices that stand beside one another."""
    masks = {**problem.masks}
    for root in problem.roots:
        masks[root.name] &= root.mask
    for name, mask, _ in problem.bans:
        masks[name] = masks.get(name, 0) & ~mask
    names = sorted(masks, key=lambda name: masks[name].bit_count())
    yield from _chosen(problem, masks, names, {})


def _chosen(
    problem: Problem, masks: dict[str, int], names: list[str], bits: dict[str, int]
) -> Iterator[dict[str, int]]:
    """Yield each way to choose what is left of the names, within what was chosen accepts."""
    if not names:
        if not any(_forbids(one.literals, bits) for one in problem.nogoods):
            yield bits
        return
    name, *rest = names
    for bit in bits_of(masks[name]):
        left = {**masks, name: 1 << bit}
        for part in problem.parts.get((name, ""), ()):
            for demand in part.demands if part.mask >> bit & 1 else ():
                if demand.name in left:
                    left[demand.name] &= demand.mask
        if all(left.values()):
            yield from _chosen(problem, left, rest, {**bits, name: bit})


def _forbids(literals: Iterable[Literal], bits: Mapping[str, int]) -> bool:
    """True when all conditions of a row hold, as the engine reads them of what the problem has."""
    return all((one.name in bits and bool(one.mask >> bits[one.name] & 1)) is one.inside for one in literals)
