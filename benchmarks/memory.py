"""Measured peaks against the predicted ones, and against accelerate's and DeepSpeed's rules.

    python benchmarks/memory.py [FILE.json]...      (default: tests/memory/points/*.json)
    python benchmarks/memory.py benchmarks/memory_trainers.json      other trainers and towers, as they came

A file holds `{"points": [{"id", "model" or "config", "method", "batch", "seq", "dtype", "ckpt",
"peak_allocated_gib", "peak_reserved_gib", ...}]}`.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import Constants, TrainingRun, predict, read_constants
from envdoctor.memory.layout import layers, parameters

TESTS = Path(__file__).parent.parent / "tests" / "memory"
POINTS = TESTS / "points"
sys.path.insert(0, str(TESTS))

from measured_points import GIB, Point, read_points  # noqa: E402


def accelerate_rule(run: TrainingRun) -> float:
    """`accelerate estimate-memory` for training with Adam: four times the weights."""
    return 4 * parameters(run.shape) * run.weight_bytes


def deepspeed_rule(run: TrainingRun) -> float:
    """DeepSpeed's estimate_zero2/3_model_states_mem_needs, all parameters trained."""
    total, cards = parameters(run.shape), run.replicas
    if run.parallel == "zero3":
        return 4 * max(sum(layer.tensors()) for layer, _ in layers(run.shape)) + 18 * total / cards
    return 2 * total + 18 * total / cards if cards > 1 else 18 * total


def relative(value: float, truth: float) -> float:
    """Per cent by which a value lies above the truth."""
    return 100 * (value / truth - 1)


def print_rows(points: tuple[Point, ...], constants: Constants) -> None:
    """Print a line a point and a summary for each split."""
    heads = ("measured", "ours", "error", "accel.", "DeepSp.", "reserved", "bound")
    print(" ".join(f"{head:>9}" for head in heads), " point")
    errors: dict[str, list[tuple[float, float, float, float]]] = {}
    for point in points:
        answer = predict(point.run, constants)
        rules = accelerate_rule(point.run), deepspeed_rule(point.run)
        row = (
            relative(answer.peak_allocated_bytes, point.allocated),
            relative(answer.peak_reserved_bytes, point.reserved),
            relative(rules[0], point.allocated),
            relative(rules[1], point.allocated),
        )
        errors.setdefault(point.split or "unsplit", []).append(row)
        cells = (
            f"{point.allocated / GIB:.2f}",
            f"{answer.peak_allocated_bytes / GIB:.2f}",
            f"{row[0]:+.1f}%",
            f"{row[2]:+.0f}%",
            f"{row[3]:+.0f}%",
            f"{point.reserved / GIB:.2f}",
            f"{row[1]:+.1f}%",
        )
        print(" ".join(f"{cell:>9}" for cell in cells), "", point.id)
    for split, rows in errors.items():
        print_summary(split, rows)


def print_summary(split: str, rows: list[tuple[float, float, float, float]]) -> None:
    """Print means and worst cases of one split."""
    ours = [abs(row[0]) for row in rows]
    bounds = [row[1] for row in rows]
    below, excess = sum(b < 0 for b in bounds), statistics.median(bounds)
    rules = [statistics.mean(abs(row[column]) for row in rows) for column in (2, 3)]
    print(f"{split}: {len(rows)} points")
    print(f"  allocated: mean error {statistics.mean(ours):.2f} %, worst {max(ours):.2f} %")
    print(f"  reserved: {below} below the truth, median excess {excess:.1f} %")
    print(f"  mean error of accelerate's rule {rules[0]:.0f} %, of DeepSpeed's {rules[1]:.0f} %")


def print_speed(points: tuple[Point, ...], constants: Constants) -> None:
    """Print how long a prediction takes, new and remembered."""
    runs = [point.run for point in points]
    for name in ("first", "again"):
        started = time.perf_counter()
        for run in runs:
            predict(run, constants)
        print(f"{name}: {1e6 * (time.perf_counter() - started) / len(runs):.0f} µs a prediction")


def main(arguments: list[str]) -> None:
    """Print the table for the given files."""
    files = [Path(a) for a in arguments] or sorted(POINTS.glob("*.json"))
    points = tuple(point for file in files for point in read_points(file))
    constants = read_constants(load_matrix().rows(tables.MemoryRow), {}, (9, 0))
    print_speed(points, constants)
    print_rows(points, constants)


if __name__ == "__main__":
    main(sys.argv[1:])
