"""The speed model against settings that were timed on an H200."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

import pytest

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import find_shape
from envdoctor.profile.speed import card_speed, seconds_per_sample
from envdoctor.profile.workload import Choice

POINTS = Path(__file__).parent / "points"


def timed(name: str) -> list[tuple[float, float]]:
    speed = card_speed(load_matrix().rows(tables.SpeedRow), ComputeCapability(9, 0))
    found = []
    for row in json.loads((POINTS / name).read_bytes()):
        if row["s_per_sample"]:
            choice = Choice(
                "sft", row["method"], batch=row["batch"], grad_accum=row["accum"], seq=1024,
                grad_ckpt=row["ckpt"], liger=row["liger"], lora_rank=16,
            )  # fmt: skip
            found.append((row["s_per_sample"], seconds_per_sample(find_shape(row["model"]), choice, speed)))
    return found


@pytest.mark.parametrize(("name", "settings"), [("speed.json", 44), ("speed_heldout.json", 51)])
def test_pairs_that_differ_by_seven_per_cent_are_ordered_right(name: str, settings: int) -> None:
    """The second file was timed after the model's figures were settled."""
    points = timed(name)
    pairs = [(a, b) for n, a in enumerate(points) for b in points[:n] if abs(math.log(a[0] / b[0])) > 0.0677]
    right = sum((a[0] > b[0]) == (a[1] > b[1]) for a, b in pairs)
    assert len(points) == settings
    assert right >= 0.95 * len(pairs)
    assert statistics.mean(abs(modelled / measured - 1) for measured, modelled in points) <= 0.12


def test_small_micro_batches_wait_for_the_host() -> None:
    """A layer's launches cost 3 ms there and back, so half the batch takes nearly the same time."""
    shape = find_shape("qwen2.5-1.5b")
    speed = card_speed(load_matrix().rows(tables.SpeedRow), ComputeCapability(9, 0))
    one, two = (
        seconds_per_sample(shape, Choice("sft", "full", batch=batch, seq=1024, grad_ckpt=False), speed)
        * batch
        for batch in (1, 2)
    )
    assert two < 1.1 * one
    assert one > 2.5e-3 * shape.layers
