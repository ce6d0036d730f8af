"""Sixty requests that cannot be met, each with its minimal causes, on the shipped facts."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from solve_world import goal, shipped, target, world

from envdoctor.solve.causes import causes_of
from envdoctor.solve.explain import DEPTHS, Inquiry
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[1] / "scenarios" / "conflicts"
SCENARIOS = sorted(FOLDER.glob("*.toml"))


@cache
def facts() -> Any:
    return shipped()


def read_goal(scenario: dict[str, Any]) -> Goal:
    snapshot, matrix = facts()
    python = tuple(int(part) for part in scenario.get("python", "3.11").split("."))
    on = target(
        python,
        scenario.get("platform", "x86_64-manylinux_2_35"),
        scenario.get("gpus", ()),
        scenario.get("driver"),
        matrix,
    )
    return goal(
        snapshot,
        scenario["request"],
        on=on,
        matrix=matrix,
        exclude_newer=scenario.get("exclude_newer"),
        allow_source=scenario.get("allow_source", False),
    )


def test_what_is_built_for_a_cuda_stands_beside_a_later_one_of_its_major() -> None:
    snapshot, matrix = facts()
    on = target((3, 12), "x86_64-manylinux_2_35", ("B200",), "580.65.06", matrix)
    answer = pin(goal(snapshot, ["xformers==0.0.30"], on=on, matrix=matrix))
    assert ("torch", "2.7.0", "cu128") in {(one.name, one.version, one.index) for one in answer.pins}


def test_there_are_sixty() -> None:
    assert len(SCENARIOS) >= 60


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_causes_are_those_expected_and_none_can_be_spared(path: Path) -> None:
    scenario = tomllib.loads(path.read_text())
    wanted = read_goal(scenario)
    inquiry = next(i for depth in DEPTHS if (i := Inquiry(wanted, depth)).clashes())
    reasons = inquiry.minimal()
    assert reasons is not None
    told = causes_of(wanted, reasons)
    assert len(told) == len(scenario["cause"]), told
    for expected in scenario["cause"]:
        assert any(
            cause.kind == expected["kind"]
            and all(word in f"{cause.text} {cause.source}" for word in expected["says"])
            for cause in told
        ), (expected, told)
    numbers = [number for number, reason in inquiry.reasons.items() if reason in reasons]
    assert inquiry.engine.clashes(numbers)
    for spared in numbers:
        assert not inquiry.engine.clashes(set(numbers) - {spared})
    assert all(cause.source for cause in told)


def test_an_extra_that_nothing_meets_is_a_conflict() -> None:
    packages = {
        "app": {"1.0": {"requires": ['tool>1; extra == "fast"']}},
        "tool": {"1.0": {}, "2.0": {"files": ["cp38-cp38-manylinux_2_17_x86_64", "sdist"]}},
    }
    answer = pin(goal(world(packages), ["app[fast]"]))
    assert answer.status == "conflict"
    assert "the ban on source builds (--allow-source)" in {way.drop for way in answer.relaxations}


def test_what_cannot_be_read_offers_to_take_it_as_it_is() -> None:
    packages = {
        "app": {"1.0": {"requires": ["tool"]}},
        "tool": {"1.0": {"requires": None, "files": ["sdist"]}},
    }
    answer = pin(goal(world(packages), ["app"]))
    assert answer.status == "unknown"
    assert [way.drop for way in answer.relaxations] == ["the ban on source builds (--allow-source)"]


@pytest.mark.parametrize(
    ("platform", "way"),
    [
        ("windows", "windows for x86_64-manylinux_2_39 (as in WSL)"),
        ("x86_64-unknown-linux-musl", "x86_64-unknown-linux-musl for x86_64-manylinux_2_39"),
        ("macos", ""),
    ],
)
def test_a_system_without_wheels_is_offered_a_linux_that_the_machine_runs(platform: str, way: str) -> None:
    packages = {"tool": {"1.0": {"files": ["cp311-cp311-manylinux_2_17_x86_64"]}}}
    answer = pin(goal(world(packages), ["tool"], on=target((3, 11), platform)))
    assert answer.status == "conflict"
    assert [one.drop for one in answer.relaxations] == ([way] if way else [])


def test_a_way_out_is_found_where_several_things_must_give_way_together() -> None:
    packages = {
        "engine": {
            "1.0": {"requires": ["frame==1.0", "gone==9"]},
            "2.0": {"requires": ["frame==2.0", "hub==2.0"]},
        },
        "frame": {"1.0": {}, "2.0": {}},
        "hub": {"1.0": {}, "2.0": {}},
        "gone": {"8.0": {}},
        "kernels": {"1.0": {"files": ["cp38-cp38-manylinux_2_17_x86_64", "sdist"]}},
    }
    answer = pin(goal(world(packages), ["frame==1.0", "engine>=2", "hub<2", "kernels"]))
    assert [way.drop for way in answer.relaxations] == [
        "the ban on source builds (--allow-source) and engine"
    ]


def test_what_stands_in_the_way_as_well_is_told() -> None:
    packages = {
        "app": {"1.0": {"requires": ["tool<2", "lib"]}},
        "tool": {"1.0": {}, "2.0": {}},
        "lib": {"1.0": {"requires": ["tool<2"]}},
    }
    answer = pin(goal(world(packages), ["app", "tool==2.0"]))
    assert [cause.text for cause in answer.causes] == [
        "app is asked for",
        "tool==2.0 is asked for",
        "app 1.0 requires tool<2",
    ]
    assert [[cause.text for cause in one] for one in answer.also] == [
        ["app is asked for", "tool==2.0 is asked for", "app 1.0 requires lib", "lib 1.0 requires tool<2"]
    ]
    assert answer.as_json()["conflict"]["also"][0][3]["text"] == "lib 1.0 requires tool<2"


def test_a_release_that_the_index_has_not_is_told() -> None:
    packages = {"app": {"1.0": {"requires": ["tool==1.5"]}}, "tool": {"1.0": {}, "2.0": {}}}
    answer = pin(goal(world(packages), ["app"]))
    assert "app 1.0 requires tool==1.5 (the index has no such release)" in [c.text for c in answer.causes]
