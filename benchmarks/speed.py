"""Timed settings against the speed model: how many pairs it orders right.

    python benchmarks/speed.py [FILE.json]      (default: tests/profile/points/speed.json)

A file holds `[{"model", "method", "liger", "batch", "accum", "ckpt", "s_per_sample"}]`, rows of 1,024 tokens.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import find_shape
from envdoctor.profile.speed import card_speed, seconds_per_sample
from envdoctor.profile.workload import Choice

POINTS = Path(__file__).parent.parent / "tests" / "profile" / "points" / "speed.json"
DIFFERENT = math.log(1.07)


def read_timed(path: Path) -> list[tuple[float, float]]:
    """Return measured and modelled seconds a sample of each timed setting."""
    rows: list[dict[str, Any]] = json.loads(path.read_bytes())
    speed = card_speed(load_matrix().rows(tables.SpeedRow), ComputeCapability(9, 0))
    found = []
    for row in rows:
        if row["s_per_sample"] is None:
            continue
        choice = Choice(
            "sft", row["method"], batch=row["batch"], grad_accum=row["accum"], seq=1024,
            grad_ckpt=row["ckpt"], liger=row["liger"], lora_rank=16,
        )  # fmt: skip
        found.append((row["s_per_sample"], seconds_per_sample(find_shape(row["model"]), choice, speed)))
    return found


def ordered(timed: list[tuple[float, float]]) -> tuple[int, int]:
    """Return how many of the pairs that differ by 7 % are ordered right, and how many there are."""
    pairs = [(a, b) for n, a in enumerate(timed) for b in timed[:n] if abs(math.log(a[0] / b[0])) > DIFFERENT]
    return sum((a[0] > b[0]) == (a[1] > b[1]) for a, b in pairs), len(pairs)


def main(arguments: list[str]) -> None:
    """Print the table."""
    timed = read_timed(Path(arguments[0]) if arguments else POINTS)
    right, pairs = ordered(timed)
    errors = [abs(modelled / measured - 1) for measured, modelled in timed]
    print(f"{len(timed)} settings, {right} of {pairs} pairs ordered right ({100 * right / pairs:.1f} %)")
    print(f"times are off by {100 * statistics.mean(errors):.0f} %, at worst {100 * max(errors):.0f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
