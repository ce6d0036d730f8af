"""What each function of the solver answers by itself, of drawn worlds and of what is asked of them.

`solver_alone.tsv` keeps the answers, a module a line; after a function changed, `ENVDOCTOR_RECORD=1
pytest -n0 tests/solve/test_solver_alone.py` writes it anew.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from alone import Made, Pools, differing
from test_drawn_requests import drawn
from test_drawn_worlds import NAMES, drawn_goal, policy_of, problem_of

from envdoctor.solve.pinning import pin
from envdoctor.solve.solver import solve

RECORD = Path(__file__).with_name("solver_alone.tsv")
GOALS, PINNED = 30, 8
WORDS = (
    "torch>=2.4",
    "alpha==1.0", "beta[extra]<2 ; python_version < '3.11'", "Gamma_Delta", "torch==2.6.0+cu124",
    "x @ https://a.example/x-1.0-py3-none-any.whl", "-r more.txt", "--index-url https://a.example/simple", "",
    ">=1.0,<2", "~=2.1.post1", "==1.*", "!=1.5", "1.0", "2.6.0", "cu126", "3.11",
    ">=3.8", "2026-01-01", "a", "b",
)  # fmt: skip


@cache
def pools() -> Pools:
    goals = [drawn_goal(number) for number in range(GOALS)]
    policies = [policy_of(goal) for goal in goals]
    problems = [problem_of(goal, policy) for goal, policy in zip(goals, policies, strict=True)]
    nodes = [problem.node(sorted(problem.masks)[0]) for problem in problems if problem.masks]
    lines = [line for number in range(24) for line in drawn(number)[1].splitlines()]
    texts = [*WORDS, *NAMES, *lines[:120]]
    return {
        "Goal": goals, "Policy": policies, "Node": nodes, "Context": [goal.context for goal in goals],
        "Problem": [Made(partial(problem_of, *one)) for one in zip(goals, policies, strict=True)],
        "Target": [goal.context.target for goal in goals], "PinSet": [pin(goal) for goal in goals[:PINNED]],
        "Picks": [picks for goal in goals if (picks := solve(goal)) is not None], "bool": (True, False),
        "str": texts, "str | None": [*texts, None], "int": range(20), "int | None": [*range(9), None],
        "Collection[str]": [texts[n : n + 4] for n in range(40)], "Policy | None": [*policies[:9], None],
        "Sequence[str]": [texts[n : n + 4] for n in range(40)], "tuple[str, ...]": [(), ("a",), ("b", "c")],
    }  # fmt: skip


def test_each_function_of_the_solver_answers_as_it_did() -> None:
    assert differing(RECORD, "envdoctor.solve", pools()) == []
