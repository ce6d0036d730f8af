"""Few choices are tried one by one, and give what the engine gives."""

from __future__ import annotations

from test_drawn_worlds import drawn_goal

from envdoctor.solve.engine import Engine
from envdoctor.solve.prune import prune
from envdoctor.solve.small import is_small, only_best
from envdoctor.solve.solver import policy_of, problem_of


def test_few_choices_tried_give_the_one_answer_of_the_engine():
    found = 0
    for number in range(150):
        goal = drawn_goal(number)
        policy = policy_of(goal)
        problem = problem_of(goal, policy)
        prune(problem, policy)
        if all(problem.masks.get(root.name) for root in problem.roots) and is_small(problem):
            best = only_best(problem, policy)
            assert best == Engine(problem, policy).best(alone=True), number
            found += best is not None
    assert found > 60
