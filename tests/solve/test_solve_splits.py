"""Stacks that can share no environment get two, with the proof."""

from __future__ import annotations

import pytest
from solve_world import EMPTY, goal, shipped, target, world

from envdoctor.matrix import Matrix
from envdoctor.solve.pinning import pin

CASES = {
    "axolotl": (["vllm==0.32.0", "axolotl==0.21.0", "torch"], ("axolotl 0.21.0", "transformers==5.20.1")),
    "llamafactory": (["vllm==0.32.0", "llamafactory==0.9.5"], ("llamafactory 0.9.5", "<=5.6.0")),
    "ms-swift": (["vllm==0.32.0", "ms-swift==4.2.0"], ("ms-swift 4.2.0", "transformers")),
    "trl": (["vllm==0.32.0", "trl[vllm]==1.16.0"], ("trl 1.16.0", "vllm")),
}


@pytest.mark.parametrize("training", CASES)
def test_vllm_and_a_training_stack_that_clash_get_an_environment_each(training: str) -> None:
    snapshot, matrix = shipped()
    requests, (owner, bound) = CASES[training]
    on = target((3, 12), "x86_64-manylinux_2_35", matrix=matrix)
    answer = pin(goal(snapshot, requests, on=on, matrix=matrix, allow_source=True))
    assert answer.status == "split"
    serving, learning = ({one.name: one.version for one in half.pins} for half in answer.sets)
    assert serving["vllm"] == "0.32.0"
    assert training not in serving
    assert training in learning
    assert any(owner in cause.text and bound in cause.text for cause in answer.causes)
    assert ("torch" in requests) <= ("torch" in serving and "torch" in learning)


ROLES = {"engine": "serving", "trainer": "training", "tuner": "training"}
NEEDS = {"engine": "core==1", "trainer": "core==2", "tuner": "core==1", "other": "core==2", "plain": "core"}


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (["engine", "trainer"], "split"),
        (["engine", "trainer", "plain"], "split"),
        (["trainer", "tuner"], "conflict"),
        (["engine", "other"], "conflict"),
        (["engine", "tuner", "other"], "conflict"),
        (["engine", "trainer", "other"], "conflict"),
        (["engine", "tuner", "plain"], "solved"),
    ],
)
def test_only_stacks_of_different_ends_that_clash_are_parted(asked: list[str], status: str) -> None:
    packages = {name: {"1": [needed]} for name, needed in NEEDS.items()}
    origin = {"source": "https://example.com", "checked_on": "2026-01-01", "basis": "upstream statement"}
    rows = [{"id": f"ROLE-{name}", "name": name, "role": role, **origin} for name, role in ROLES.items()]
    matrix = Matrix({"stack_role": rows}, "test", "2026-01-01", EMPTY.folder)
    answer = pin(goal(world({"core": {"1": [], "2": []}, **packages}), asked, matrix=matrix))
    assert answer.status == status
    assert [{pin.name for pin in half.pins} for half in answer.sets] == (
        [{*asked, "core"} - {"trainer"}, {*asked, "core"} - {"engine"}] if status == "split" else []
    )
