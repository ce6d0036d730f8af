"""What no metadata forbids and was never meant together is avoided, with its reason; it is no conflict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import solve_world as world

from envdoctor.matrix import Matrix
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin
from envdoctor.solve.solver import solve_without_doubts

LONG = 1000


def pinned(goal: Goal) -> dict[str, str]:
    return {one.name: one.version for one in pin(goal).pins}


def reasons(goal: Goal, name: str) -> str:
    return "\n".join(next(one.because for one in pin(goal).pins if one.name == name))


def goal(packages: Mapping[str, Mapping[str, Any]], *requests: str, matrix: Matrix = world.EMPTY) -> Goal:
    return world.goal(world.world(packages), requests, matrix=matrix)


FRAME = {
    "1.5": {"requires": ["array"], "day": 100},
    "2.0": {"requires": ["array"], "day": 200},
    "2.1": {"requires": ["array<2"], "day": 300},
    "3.0": {"requires": ["array"], "day": LONG + 100},
}
ARRAY = {"1.9": {"day": 50}, "2.0": {"day": LONG}, "2.1": {"day": LONG + 50}}


def test_a_bound_that_a_later_release_added_counts_for_the_earlier_ones() -> None:
    asked = goal({"frame": FRAME, "array": ARRAY}, "frame==1.5")
    assert pinned(asked) == {"frame": "1.5", "array": "1.9"}
    assert "not newer: frame 2.1, which came after 1.5, requires array<2" in reasons(asked, "array")


def test_the_newest_release_takes_the_newest() -> None:
    assert pinned(goal({"frame": FRAME, "array": ARRAY}, "frame")) == {"frame": "3.0", "array": "2.1"}


def test_a_later_release_that_was_made_with_it_speaks_for_it() -> None:
    early = {"1.5": FRAME["1.5"], "1.6": {"requires": ["array"], "day": LONG + 60}}
    told = reasons(goal({"frame": early, "array": ARRAY}, "frame==1.6"), "array")
    assert "not newer" not in told


def test_a_major_version_that_came_long_after_it_was_superseded_is_untried() -> None:
    frame = {version: {**told, "requires": ["array"]} for version, told in FRAME.items()}
    asked = goal({"frame": frame, "array": ARRAY}, "frame==1.5")
    assert pinned(asked)["array"] == "1.9"
    assert "superseded long before array 2 came" in reasons(asked, "array")


def test_a_day_tells_nothing_where_all_that_is_older_would_be_compiled() -> None:
    frame = {version: {**told, "requires": ["array"]} for version, told in FRAME.items()}
    array = {"1.9": {"day": 50, **wheels("8")}, "2.0": {"day": LONG, **wheels("8", "11")}}
    packages = world.world({"frame": frame, "array": array})
    asked = world.goal(packages, ["frame==1.5"], allow_source=True)
    assert pinned(asked)["array"] == "2.0"


def test_a_year_is_no_major_version() -> None:
    frame = {version: {**told, "requires": ["array"]} for version, told in FRAME.items()}
    array = {"2025.1": {"day": 50}, "2027.1": {"day": LONG}}
    assert pinned(goal({"frame": frame, "array": array}, "frame==1.5"))["array"] == "2027.1"


def test_a_bound_of_its_own_is_believed() -> None:
    frame = {version: {**told, "requires": ["array<3"]} for version, told in FRAME.items()}
    assert pinned(goal({"frame": frame, "array": ARRAY}, "frame==1.5"))["array"] == "2.1"


def test_what_was_asked_for_stands_against_a_doubt() -> None:
    assert pinned(goal({"frame": FRAME, "array": ARRAY}, "frame==1.5", "array>=2"))["array"] == "2.1"


def test_one_doubt_that_cannot_be_avoided_leaves_the_others() -> None:
    frame = {v: {**told, "requires": ["array", "plot"]} for v, told in FRAME.items()}
    answer = pinned(goal({"frame": frame, "array": ARRAY, "plot": ARRAY}, "frame==1.5", "array>=2"))
    assert answer == {"frame": "1.5", "array": "2.1", "plot": "1.9"}


@pytest.mark.parametrize(
    ("requests", "picked"),
    [
        (["trainer==1.0", "library"], {"trainer": "1.0", "library": "4.9"}),
        (["trainer", "library"], {"trainer": "2.0", "library": "5.1"}),
        (["trainer==1.0", "library==5.1"], {"trainer": "1.0", "library": "5.1"}),
    ],
)
def test_a_name_that_a_release_imports_and_another_lacks(
    requests: list[str], picked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"trainer": "library\t0.9:1.0\tOld from library.parts\t5.0:"}
    monkeypatch.setattr(Matrix, "generated", lambda self, name: {"facts": facts} if name == "imports" else {})
    packages = {
        "trainer": {"0.9": ["library"], "1.0": ["library"], "2.0": ["library"]},
        "library": {"4.9": [], "5.0": [], "5.1": []},
    }
    assert pinned(goal(packages, *requests)) == picked


@pytest.mark.parametrize(
    ("requests", "name", "below"),
    [
        (["pandas==1.5.3", "scikit-learn==1.2.2"], "numpy", "2"),
        (["datasets==2.10.0"], "pyarrow", "20"),
        (["trl==0.12.0", "transformers"], "transformers", "4.47"),
        (["vllm==0.8.5"], "transformers", "5"),
        (["wandb==0.15.0"], "setuptools", "82"),
    ],
)
def test_on_the_shipped_facts(requests: list[str], name: str, below: str) -> None:
    from packaging.version import Version

    snapshot, matrix = world.shipped()
    on = world.target((3, 10), "x86_64-manylinux_2_35", matrix=matrix)
    asked = world.goal(snapshot, requests, on=on, matrix=matrix, allow_source=True)
    assert Version(pinned(asked)[name]) < Version(below)


def test_a_patch_release_imports_what_the_last_one_on_record_did() -> None:
    facts = world.shipped()[1].generated("imports")["facts"]
    (spans,) = {
        spans
        for provider, spans, what, _ in (line.split("\t") for line in facts["pytorch-lightning"].split("\n"))
        if provider == "torchmetrics" and "get_num_classes" in what
    }
    assert spans == "1.3.0:1.4.9"


def test_what_was_avoided_on_other_facts_binds_nobody() -> None:
    asked = goal({"frame": FRAME, "array": ARRAY}, "frame==1.5")
    with_doubts, picks = solve_without_doubts(asked)
    assert with_doubts.avoided
    assert picks is not None
    assert with_doubts.on(asked.context.target, asked.context.options).avoided == ()


def test_what_is_asked_for_gets_no_older_for_a_doubt_between_packages_that_it_brings() -> None:
    packages = {
        "engine": {
            "1.0": {"requires": [], "day": LONG},
            "2.0": {"requires": ["frame==1.5", "array>=2"], "day": LONG + 100},
        },
        "frame": {version: {**told, "requires": ["array"]} for version, told in FRAME.items()},
        "array": ARRAY,
    }
    assert pinned(goal(packages, "engine")) == {"engine": "2.0", "frame": "1.5", "array": "2.1"}


def wheels(*pythons: str) -> dict[str, Any]:
    tags = [f"cp3{one}-cp3{one}-manylinux_2_17_x86_64" for one in pythons]
    return {"files": [*tags, "sdist"]}


def test_what_has_a_wheel_comes_before_what_would_be_compiled() -> None:
    packages = {"lib": {"1": wheels("9", "11"), "2": wheels("12", "13"), "3": {"files": ["sdist"]}}}
    asked = world.goal(world.world(packages), ["lib"], allow_source=True)
    assert pinned(asked) == {"lib": "1"}
    assert "not newer: lib 3 has no wheel for CPython 3.11" in reasons(asked, "lib")


def test_what_must_be_compiled_is_told_with_the_pythons_that_it_has_wheels_for() -> None:
    packages = {"app": {"1": ["lib<2"]}, "lib": {"1": wheels("6", "9"), "2": wheels("11")}}
    answer = pin(world.goal(world.world(packages), ["app"], allow_source=True))
    assert [(one.name, one.version) for one in answer.pins] == [("app", "1"), ("lib", "1")]
    assert "(it has them from CPython 3.6 to 3.9): it is compiled" in "".join(answer.notes)


def test_what_only_ever_came_as_a_source_is_no_doubt() -> None:
    packages = {"lib": {"1": {"files": ["py3-none-any", "sdist"]}, "2": {"files": ["sdist"]}}}
    asked = world.goal(world.world(packages), ["lib"], allow_source=True)
    assert pinned(asked) == {"lib": "2"}
    built = "lib 2: without a wheel for any machine, built from source where it is installed"
    assert pin(asked).notes == (built,)


def test_what_is_published_as_a_source_alone_is_taken_and_said_to_be_built() -> None:
    packages = {"lib": {"1": {"files": ["sdist", "py2-none-any"]}}}
    answer = pin(world.goal(world.world(packages), ["lib"]))
    assert [one.version for one in answer.pins] == ["1"]
    assert "built from source where it is installed" in " ".join(answer.notes)


def test_what_has_wheels_for_this_system_in_other_releases_is_compiled_and_not_taken() -> None:
    native = {"files": ["cp311-cp311-manylinux_2_17_x86_64"]}
    packages = {"lib": {"1": native, "2": {"files": ["sdist"]}}}
    assert pinned(world.goal(world.world(packages), ["lib"])) == {"lib": "1"}


def test_releases_that_a_third_names_by_their_numbers_are_not_doubted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its authors ran them together, whatever one of them imports somewhere."""
    facts = {"tool": "hub\t1:1\tgone from hub\t2:2"}
    monkeypatch.setattr(Matrix, "generated", lambda self, name: {"facts": facts} if name == "imports" else {})
    packages = {
        "trainer": {"1": ["hub==1", "tool==1"], "2": ["hub==2", "tool==1"]},
        "loose": {"1": ["hub==1", "tool"], "2": ["hub==2", "tool"]},
        "hub": {"1": [], "2": []},
        "tool": {"1": []},
    }
    asked = [world.goal(world.world(packages), [name]) for name in ("trainer", "loose")]
    assert [pinned(one)["hub"] for one in asked] == ["2", "1"]
