"""Stacks that can share no environment get two, with the proof."""

from __future__ import annotations

import pytest
from solve_world import goal, shipped, target

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
