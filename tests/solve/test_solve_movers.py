"""What must move along, and what only may; an extra that what moves asks for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from solve_world import goal, world

from envdoctor.solve.goal import Picks
from envdoctor.solve.mending import Demands, search
from envdoctor.solve.movers import must_move

WORLD = world(
    {
        "app": {"1": ["lib<2"], "2": ["lib>=2"], "3": ["lib>=2"]},
        "lib": {"1": [], "2": ["base>=2"], "3": ["base>=2"]},
        "base": {"1": [], "2": [], "3": []},
        "old": {"1": ["app<2"], "2": []},
        "free": {"1": ["base"], "2": ["base"]},
        "plug": {"1": [], "2": ["lib[fast]>=2"]},
    }
)
FAST = world(
    {
        "plug": {"1": ["lib"], "2": ["lib[fast]"]},
        "lib": {"1": {"requires": ["wheel", 'speed>=1; extra == "fast"']}},
        "speed": {"1": ["gear"]},
        "gear": {"1": []},
        "wheel": {"1": []},
    }
)


def moved(asked: str, **installed: str) -> frozenset[str]:
    one = goal(WORLD, [asked], installed=installed, least_change=True)
    node = one.context.known(one.requests[0].name)
    return must_move(one.context, {node.name: node.admits(one.requests[0].spec)}, installed)


@pytest.mark.parametrize(
    ("asked", "installed", "movers"),
    [
        ("app>=2", {"app": "1", "lib": "1", "base": "1"}, {"lib", "base"}),
        ("app>=2", {"app": "1", "lib": "2", "base": "2"}, set()),
        ("app>=2", {"app": "1", "lib": "2", "base": "2", "old": "1"}, {"old"}),
        ("app>=2", {"app": "1", "lib": "1", "base": "1", "free": "1"}, {"lib", "base"}),
        ("app>=2", {"lib": "2", "base": "2", "old": "1"}, set()),  # what it is in want of may stay so
        ("app>=1", {"app": "1", "lib": "2", "base": "2"}, set()),
        ("base>=2", {"base": "1", "lib": "1", "free": "1"}, set()),
    ],
)
def test_what_no_answer_leaves_as_it_is(asked: str, installed: dict[str, str], movers: set[str]) -> None:
    assert moved(asked, **installed) == movers


def chosen(snapshot: object, pins: Mapping[str, str], rings: int, **installed: str) -> dict[str, str] | None:
    requests = [f"{name}{spec}" for name, spec in pins.items()]
    one = goal(snapshot, requests, installed=installed, least_change=True)  # type: ignore[arg-type]
    picks: Picks | None = search(one, Demands(pins), rings)
    return picks and {n: one.context.known(n).version(bit) for n, bit in picks.bits.items()}


def test_movers_beyond_the_first_neighbours_are_found_at_once() -> None:
    installed = {"app": "1", "lib": "1", "base": "1", "free": "1"}
    found = chosen(WORLD, {"app": ">=2"}, 1, **installed)
    assert found == {"app": "3", "lib": "3", "base": "3", "free": "1"}


def test_nothing_is_found_where_nothing_may_move() -> None:
    assert chosen(WORLD, {"app": ">=2"}, 0, app="1", lib="1", base="1") is None


def test_an_extra_that_what_moves_asks_for_is_brought_whole() -> None:
    found = chosen(FAST, {"plug": ">=2"}, 0, plug="1", lib="1", wheel="1")
    assert found == {"plug": "2", "lib": "1", "wheel": "1", "speed": "1", "gear": "1"}


def test_what_was_in_want_before_is_no_matter_of_the_pins() -> None:
    found = chosen(FAST, {"plug": ">=1"}, 0, plug="2", lib="1")
    assert found is not None
    assert not found.keys() & {"speed", "wheel"}
