"""The same optimum as an independent MaxSAT solver, on random requests, dates and targets over shipped facts.

The oracle sees the whole closure, unpruned and without windows, and shares no solving code with the engine.
CI takes a handful; `ENVDOCTOR_ORACLE=200` takes as many as one likes.
"""

from __future__ import annotations

import os
import random
from functools import cache
from typing import Any

import pytest
from pysat.examples.rc2 import RC2Stratified
from pysat.formula import WCNF, IDPool
from solve_world import goal, shipped, target, versions

from envdoctor.solve.goal import Goal
from envdoctor.solve.policy import Policy
from envdoctor.solve.problem import Problem, bits_of
from envdoctor.solve.solver import policy_of, problem_of, solve

COUNT = int(os.environ.get("ENVDOCTOR_ORACLE", "8"))
NAMES = [
    *(
        "torch",
        "transformers",
        "accelerate",
        "peft",
        "trl",
        "bitsandbytes",
        "datasets",
        "torchvision",
        "numpy",
    ),
    *("tokenizers", "huggingface-hub", "einops", "liger-kernel", "evaluate", "safetensors", "kernels"),
    *("sentence-transformers", "optimum", "torchao"),
]
DATES = [f"{year}-{month:02d}-15" for year, month in [(2024, 3), (2024, 6), (2024, 9), (2025, 1), (2025, 4)]]
DATES += ["2025-09-15", "2026-01-15", "2026-04-15", "2026-07-15", "2026-10-01"]


@cache
def facts() -> Any:
    return shipped()


def random_goal(seed: int) -> Goal:
    dice = random.Random(seed)
    snapshot, matrix = facts()
    on = target(
        dice.choice([(3, 10), (3, 11), (3, 12)]),
        dice.choice(["x86_64-manylinux_2_28", "x86_64-manylinux_2_35"]),
        dice.choice([(), ("sm_75",), ("sm_70",), ("sm_90",), ("sm_75", "sm_100")]),
        dice.choice([None, "535.54.03", "580.65.06"]),
        matrix,
    )
    requests = dice.sample(NAMES, dice.randint(2, 4))
    day = DATES[seed % len(DATES)]
    wanted = goal(
        snapshot, requests, on=on, matrix=matrix, exclude_newer=day, allow_source=dice.random() < 0.3
    )
    return wanted if dice.random() < 0.7 else _changed(dice, wanted)


def _changed(dice: random.Random, wanted: Goal) -> Goal:
    """Take an answer as installed and ask for something else of it with the least change."""
    installed = versions(wanted) or {}
    snapshot, matrix = facts()
    request = dice.choice(
        ["numpy>=2", "transformers>=4.45", "tokenizers<0.21", "torch<2.9", "accelerate<1.5"]
    )
    on = wanted.context.target
    return goal(snapshot, [request], on=on, matrix=matrix, installed=installed, least_change=True)


class Oracle:
    """One weighted clause set for a problem; levels become powers of a base larger than any level's sum."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.problem, self.policy = problem, policy
        self.ids = IDPool()
        self.formula = WCNF()
        self._choices()
        self._parts()
        self._rows()

    def var(self, *what: object) -> int:
        return int(self.ids.id(what))

    def among(self, name: str, mask: int) -> list[int]:
        return [self.var("pick", name, bit) for bit in bits_of(mask & self.problem.masks.get(name, 0))]

    def _choices(self) -> None:
        costs = {}
        for name, mask in self.problem.masks.items():
            node = self.problem.node(name)
            bits = list(bits_of(mask))
            self.formula.append([-self.var("need", name), *self.among(name, mask)])
            ladder = [self.var("ladder", name, place) for place in range(len(bits))]
            for place, bit in enumerate(bits):
                picked = self.var("pick", name, bit)
                self.formula.append([-picked, ladder[place]])
                if place:
                    self.formula.append([-ladder[place - 1], ladder[place]])
                    self.formula.append([-ladder[place - 1], -picked])
                costs[name, bit] = self.policy.cost(node, bit)
        self._weigh(costs)
        for root in self.problem.roots:
            self.formula.append([self.var("need", root.name)])
            self.formula.append(self.among(root.name, root.mask))
            for extra in root.extras:
                self.formula.append([self.var("extra", root.name, extra)])

    def _weigh(self, costs: dict[tuple[str, int], tuple[int, ...]]) -> None:
        levels = len(next(iter(costs.values())))
        weight, factors = 1, []
        for level in reversed(range(levels)):
            factors.insert(0, weight)
            worst: dict[str, int] = {}
            for (name, _), cost in costs.items():
                worst[name] = max(worst.get(name, 0), cost[level])
            weight *= sum(worst.values()) + 1
        for (name, bit), cost in costs.items():
            price = sum(one * factor for one, factor in zip(cost, factors, strict=True))
            if price:
                self.formula.append([-self.var("pick", name, bit)], weight=price)

    def _parts(self) -> None:
        for number, part in enumerate(self.problem.every_part()):
            on = self.var("on", number)
            for bit in bits_of(part.mask & self.problem.masks[part.name]):
                wanted = [-self.var("extra", part.name, part.extra)] if part.extra else []
                self.formula.append([-self.var("pick", part.name, bit), *wanted, on])
            for demand in part.demands:
                if demand.name not in self.problem.masks:
                    continue
                node = self.problem.node(demand.name)
                fitting = self.among(demand.name, demand.mask)
                need = self.var("need", demand.name)
                self.formula.append([-on, *([-need] if demand.limit else []), *fitting])
                if demand.limit:
                    continue
                self.formula.append([-on, need])
                for extra in demand.extras:
                    self.formula.append([-on, self.var("extra", demand.name, extra)])
                if demand.mask & (demand.mask - 1) == 0 and demand.mask & node.reserved:
                    self.ids.id(("pinned", demand.name))
        for name, mask in self.problem.masks.items():
            for bit in bits_of(mask & self.problem.node(name).reserved):
                pinning = [
                    self.var("on", number)
                    for number, part in enumerate(self.problem.every_part())
                    for demand in part.demands
                    if demand.name == name and demand.mask == 1 << bit and not demand.limit
                ]
                self.formula.append([-self.var("pick", name, bit), *pinning])
        for name, mask in self.problem.masks.items():
            for bit in bits_of(mask):
                self.formula.append([-self.var("pick", name, bit), self.var("need", name)])

    def _rows(self) -> None:
        for nogood in self.problem.nogoods:
            clause: list[int] = []
            for place, literal in enumerate(nogood.literals):
                held = self.var("held", nogood.row, place, id(nogood))
                picks = self.among(literal.name, literal.mask)
                for pick in picks:
                    self.formula.append([-pick, held])
                self.formula.append([-held, *picks])
                clause.append(-held if literal.inside else held)
            self.formula.append(clause)

    def best(self) -> int | None:
        with RC2Stratified(self.formula, solver="g4") as solver:
            model = solver.compute()
            return None if model is None else int(solver.cost)

    def price(self, bits: dict[str, int]) -> int:
        """What the engine's picks cost the oracle."""
        priced = {
            abs(clause[0]): weight
            for clause, weight in zip(self.formula.soft, self.formula.wght, strict=True)
        }
        return sum(priced.get(self.var("pick", name, bit), 0) for name, bit in bits.items())


@pytest.mark.parametrize("seed", range(COUNT))
def test_the_answer_is_as_good_as_the_oracles(seed: int) -> None:
    wanted = random_goal(seed)
    policy = policy_of(wanted)
    picks = solve(wanted)
    if not all(policy.asked.values()):
        assert picks is None
        return
    oracle = Oracle(problem_of(wanted, policy), policy)
    best = oracle.best()
    assert (best is None) is (picks is None)
    if picks is not None:
        assert oracle.price(picks.bits) == best
