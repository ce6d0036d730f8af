"""Answers that are read off are the best ones; where that is not proven, a search decides."""

from __future__ import annotations

from typing import Any

import pytest
from solve_world import goal, versions, world

from envdoctor.solve.direct import Unproven, completed, newest_asked, stands_alone
from envdoctor.solve.goal import Goal
from envdoctor.solve.solver import policy_of


def read_off(asked: Goal, proven: bool = True) -> dict[str, str]:
    """Return the versions that are read off with what was asked for at its newest."""
    policy = policy_of(asked)
    newest = newest_asked(asked, policy)
    assert newest is not None
    bits = completed(asked, policy, newest, stands_alone(asked, policy), proven)
    return {name: asked.context.node(name).version(bit) for name, bit in bits.items()}  # type: ignore[union-attr]


CAPPED: dict[str, Any] = {"app": {"1": [], "2": ["lib<2"]}, "lib": {"1": [], "2": []}}
CHAIN: dict[str, Any] = {
    "app": {"1": ["mid", "low"]},
    "mid": {"1": [], "2": ["low<2"]},
    "low": {"1": [], "2": [], "3": []},
}
"""mid 2 holds low back by two releases, and is asked for by nobody: mid 1 with low 3 would be newer."""


def test_what_is_asked_for_leads_to_the_rest() -> None:
    """What the newest of it requires is no loss: it must be so."""
    assert read_off(goal(world(CAPPED), ["app"])) == {"app": "2", "lib": "1"}


def test_a_package_that_could_give_way_for_another_is_weighed_by_a_search() -> None:
    """mid loses less by being older than low gains."""
    asked = goal(world(CHAIN), ["app"])
    with pytest.raises(Unproven):
        read_off(asked)
    assert versions(asked) == {"app": "1", "mid": "1", "low": "3"}


def test_an_answer_that_need_not_be_best_takes_no_search() -> None:
    """Whether a way out of a conflict works is asked for nothing but an answer."""
    assert read_off(goal(world(CHAIN), ["app"]), proven=False) == {"app": "1", "mid": "2", "low": "1"}


def test_a_package_that_would_lose_as_much_stays() -> None:
    """What low gains is no more than what mid would lose: no search is needed to tell."""
    packages: dict[str, Any] = {
        "app": {"1": ["mid", "low"]},
        "mid": {"1": {"requires": [], "day": 0}, "2": {"requires": ["low<2"], "day": 90}},
        "low": {"1": {"requires": [], "day": 10}, "2": {"requires": [], "day": 20}},
    }
    asked = goal(world(packages), ["app"])
    assert read_off(asked) == {"app": "1", "mid": "2", "low": "1"}
    assert versions(asked) == read_off(asked)


def test_what_clashes_is_told_with_all_that_clash() -> None:
    """The newest of both cannot be had; the search among them alone finds the best."""
    packages: dict[str, Any] = {
        "app": {"1": ["lib<2"], "2": ["lib<2"]},
        "lib": {"1": [], "2": []},
        "other": {"1": []},
    }
    asked = goal(world(packages), ["app", "lib", "other"])
    with pytest.raises(Unproven) as told:
        read_off(asked)
    assert told.value.names == {"app", "lib"}
    assert versions(asked) == {"app": "2", "lib": "1", "other": "1"}


def test_what_stands_between_two_asked_for_is_found() -> None:
    """Nothing of mid stands beside the newest low: the three are chosen together."""
    packages: dict[str, Any] = {
        "app": {"1": ["mid"]},
        "mid": {"1": ["low<2"], "2": ["low<2"]},
        "low": {"1": [], "2": []},
    }
    asked = goal(world(packages), ["app", "low"])
    with pytest.raises(Unproven) as told:
        read_off(asked)
    assert told.value.names == {"app", "mid", "low"}
    assert versions(asked) == {"app": "1", "mid": "2", "low": "1"}
