"""What a card holds of a run that is split, and how a trace's peak is told: sums by hand."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from envdoctor.errors import InputError
from envdoctor.memory.model_config import parse_shape
from envdoctor.memory.run import Component, Prediction, TrainingRun
from envdoctor.memory.sharding import Plan, host_bytes, plan_of
from envdoctor.memory.slices import Slices, _moved
from envdoctor.memory.vision import LARGEST_IMAGE

CONFIG = {
    "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 4,
    "num_key_value_heads": 4, "vocab_size": 1024, "intermediate_size": 256,
}  # fmt: skip
ELEMENTS = 2 * 1024 * 256 + 8 * (4 * 256 * 256 + 3 * 256 * 256 + 2 * 256) + 256
"""Embedding and head; of each layer four projections, three of its MLP and two norms; the last norm.

Each is a whole number of the 512 bytes that are allocated at least."""

TENSORS = 2 + 8 * 9 + 1


def plan(**more: Any) -> Plan:
    return plan_of(TrainingRun(parse_shape(CONFIG, "config.json"), "full", dtype="bf16", amp="none", **more))


def test_one_card_holds_all_of_it() -> None:
    whole = plan()
    assert whole.weights == whole.gradients == 2 * ELEMENTS
    assert whole.optimizer == 4 * ELEMENTS + TENSORS * 512  # two states, and how often each was stepped
    assert (whole.buffers, whole.gathered, whole.share) == (0, 0, 1.0)


def test_ddp_keeps_a_copy_of_all_gradients_for_its_buckets() -> None:
    assert plan(gpus=2, parallel="ddp").buffers == plan().gradients


@pytest.mark.parametrize(("gpus", "pp", "part"), [(2, 1, 2), (4, 1, 4), (4, 2, 4), (8, 2, 8), (8, 8, 8)])
def test_zero_keeps_its_part_of_master_weights_and_both_states(gpus: int, pp: int, part: int) -> None:
    found = plan(gpus=gpus, pp=pp, parallel="zero2")
    assert found.optimizer == 3 * 4 * -(-ELEMENTS // part)
    assert found.weights == 2 * ELEMENTS // pp
    assert found.share == pp / gpus


@pytest.mark.parametrize(("gpus", "pp"), [(2, 1), (4, 1), (4, 2), (8, 4)])
def test_the_third_stage_keeps_a_part_of_the_weights_and_gathers_its_stage_s(gpus: int, pp: int) -> None:
    found = plan(gpus=gpus, pp=pp, parallel="zero3")
    assert found.weights == 2 * ELEMENTS // gpus
    assert found.gathered == 2 * (ELEMENTS // pp)  # fewer than stage3_max_live_parameters
    assert found.optimizer == 3 * 4 * -(-ELEMENTS // gpus)
    assert found.step == 6 * -(-ELEMENTS // gpus)


def test_what_is_offloaded_is_not_on_the_card() -> None:
    second = plan(gpus=2, parallel="zero2", offload_optimizer=True)
    assert (second.optimizer, second.gradients, second.step, second.share) == (0, 0, 0, 0.0)
    third = plan(gpus=2, parallel="zero3", offload_optimizer=True, offload_params=True)
    assert (third.optimizer, third.weights) == (0, 0)
    assert third.gathered == 2 * ELEMENTS


@pytest.mark.parametrize(
    ("optimizer", "params", "size"),
    [(True, True, 360), (True, False, 160), (False, True, 200), (False, False, 0)],
)
def test_what_is_offloaded_lies_in_the_host_s_memory(optimizer: bool, params: bool, size: int) -> None:
    assert host_bytes(100, 10, optimizer, params) == size


@pytest.mark.parametrize(
    ("peak", "rest", "reserved_mib"), [(80, 20, 20), (61, 1, 20), (60, 0, 20), (40, 0, 20)]
)
def test_a_traced_peak_is_told_with_what_is_left_of_it(peak: int, rest: int, reserved_mib: int) -> None:
    parts = (Component("weights", 60), Component("workspace", 10))
    known = Prediction(70, reserved_mib << 20, 400 << 20, 60, "step", parts, {})
    slices = Slices((1, 2), {}, {}, {"torch": "2.9.1"})
    found = _moved(known, {"step": peak}, "step", slices)
    assert found.peak_allocated_bytes == peak
    assert [(part.name, part.bytes) for part in found.components] == [("weights", 60), ("workspace", rest)]


@pytest.mark.parametrize(
    ("pixels", "says"),
    [
        ((28, 28), ""),
        ((27, 28), "--image-size: 27x28 is no size of an image"),
        ((28, LARGEST_IMAGE), ""),
        ((28, LARGEST_IMAGE + 1), f"--image-size: 28x{LARGEST_IMAGE + 1} is no size of an image"),
    ],
)
def test_an_image_has_at_least_a_patch_and_no_more_than_a_processor_passes_on(
    pixels: tuple[int, int], says: str
) -> None:
    tower = {"depth": 2, "embed_dim": 32, "num_heads": 2, "patch_size": 14, "spatial_merge_size": 2}
    shape = parse_shape(
        {**CONFIG, "model_type": "qwen2_vl", "vision_config": {**tower, "hidden_size": 256}}, "config.json"
    )
    assert shape.vision is not None
    with pytest.raises(InputError, match=says) if says else nullcontext():
        TrainingRun(shape, "lora", seq=1 << 19, images=1, pixels=pixels)
