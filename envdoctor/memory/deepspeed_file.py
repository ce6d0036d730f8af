"""DeepSpeed's sizes from its own configuration file, `auto` resolved as transformers does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.errors import InputError
from envdoctor.inputs import parse_json, read_input
from envdoctor.memory.run import DeepSpeed
from envdoctor.values import NamedTuple


class DeepSpeedFile(NamedTuple):
    """What a DeepSpeed configuration says of memory."""

    stage: int
    sizes: DeepSpeed
    offload_optimizer: bool
    offload_params: bool


def read_deepspeed(path: str, hidden: int) -> DeepSpeedFile:
    """Read a DeepSpeed JSON file; raises InputError naming file and key."""
    try:
        data = parse_json(read_input(path))
    except ValueError:
        raise InputError(f"{path}: not a JSON file") from None
    zero = data.get("zero_optimization") if isinstance(data, dict) else None
    if not isinstance(zero, dict):
        raise InputError(f"{path}: zero_optimization: missing")
    return parse_deepspeed(zero, path, hidden)


def parse_deepspeed(zero: Mapping[str, Any], where: str, hidden: int) -> DeepSpeedFile:
    """Return what a `zero_optimization` section says; raises InputError."""
    stage = zero.get("stage", 0)
    if isinstance(stage, bool) or stage not in (0, 1, 2, 3):
        raise InputError(f"{where}: zero_optimization.stage: {stage!r} is none of 0, 1, 2, 3")
    known = DeepSpeed()

    def size(key: str, default: int, auto: int) -> int:
        value = zero.get(key, default)
        value = auto if value == "auto" else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise InputError(f"{where}: zero_optimization.{key}: {value!r} is no size")
        return int(value)

    sizes = DeepSpeed(
        reduce_bucket=size("reduce_bucket_size", known.reduce_bucket, hidden * hidden),
        allgather_bucket=size("allgather_bucket_size", known.allgather_bucket, known.allgather_bucket),
        prefetch_bucket=size(
            "stage3_prefetch_bucket_size", known.prefetch_bucket, int(0.9 * hidden * hidden)
        ),
        persistence_threshold=size(
            "stage3_param_persistence_threshold", known.persistence_threshold, 10 * hidden
        ),
        max_live=size("stage3_max_live_parameters", known.max_live, known.max_live),
        sub_group=size("sub_group_size", known.sub_group, known.sub_group),
        overlap_comm=bool(zero.get("overlap_comm", stage == 3)),
        secondary=max(1, size("zero_hpz_partition_size", known.secondary, known.secondary)),
        contiguous_gradients=bool(zero.get("contiguous_gradients", True)),
    )
    return DeepSpeedFile(stage, sizes, _offloaded(zero, "optimizer"), _offloaded(zero, "param"))


def _offloaded(zero: Mapping[str, Any], what: str) -> bool:
    section = zero.get(f"offload_{what}")
    return isinstance(section, dict) and section.get("device", "none") not in (None, "none")
