"""Measured points: the runs they state, in the words of the script that measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from envdoctor.errors import InputError
from envdoctor.facts.quantities import GIB
from envdoctor.inputs import parse_json, read_input
from envdoctor.memory.catalogue import find_config
from envdoctor.memory.deepspeed_file import parse_deepspeed
from envdoctor.memory.model_config import parse_shape
from envdoctor.memory.recipes import Recipe, recipe_of, shaped
from envdoctor.memory.run import TrainingRun

BY_LOADER = {
    "TRAINER-AXOLOTL-LOGPROBS", "TRAINER-AXOLOTL-LOGPROBS-CONTIGUOUS", "TRAINER-AXOLOTL-KTO-LOGPROBS",
    "TRAINER-AXOLOTL-REFERENCE",
}  # fmt: skip


class Point(NamedTuple):
    """A run and its measured peaks in bytes; `split` is "fitted", "held-out" or empty."""

    id: str
    run: TrainingRun
    config: Mapping[str, Any]
    allocated: int
    reserved: int
    split: str


def read_points(path: Path) -> tuple[Point, ...]:
    """Read a file of points (`{"points": [...]}` or `{"results": [...]}`); raises InputError."""
    try:
        data = parse_json(read_input(path))
    except ValueError:
        raise InputError(f"{path}: not a JSON file") from None
    rows = data.get("points", data.get("results")) if isinstance(data, dict) else data
    if not isinstance(rows, list):
        raise InputError(f"{path}: no points")
    return tuple(parse_point(row) for row in rows if row.get("peak_allocated_gib"))


def parse_point(row: Mapping[str, Any]) -> Point:
    """Return a point; keys that are missing take the defaults of the measuring script."""
    config = _config(row)
    recipe = _recipe(row)
    shape = shaped(parse_shape(config, row["id"]), recipe)
    amp = row.get("amp", True)
    run = TrainingRun(
        shape,
        method=row["method"],
        batch=row["batch"],
        seq=row["seq"],
        shortest_row=int(row["seq"] * row["vary"]) if "vary" in row else None,
        grad_accum=row.get("accum", 1),
        dtype=row["dtype"],
        amp="bf16" if amp is True else "none" if amp is False else amp,
        optim=row.get("optim", "adamw_torch_fused"),
        grad_ckpt=row["ckpt"],
        reentrant=bool(row.get("reentrant", False)),
        attn=row.get("attn", "sdpa"),
        liger=bool(row.get("liger", False)),
        lora_rank=row.get("rank") or 8,
        lora_targets=row.get("targets", "all"),
        lora_dropout=row.get("dropout", 0.0),
        dora=bool(row.get("dora")),
        modules_to_save=",".join(row.get("copied", ())),
        expandable_segments=bool(row.get("expandable", recipe.expandable_segments)),
        optim_rank=row.get("optim_rank", 0),
        trained_layers=row.get("trained", 0),
        virtual_tokens=row.get("virtual", 0),
        offload_activations=bool(row.get("offloaded")),
        adapter_fp32=row.get("adapter_fp32", True),
        quant=row.get("quant", "nf4"),
        double_quant=row.get("double_quant", True),
        upcast_kbit=row.get("prepare_kbit", True),
        gpus=row.get("gpus", 1),
        task=_task(row),
        trainer=_trainer(row),
        recipe=recipe,
        packing=bool(row.get("extra", {}).get("packing")),
        max_completion=row.get("completion"),
        images=row.get("images"),
        pixels=tuple(row.get("pixels", (1024, 1024))),
        frozen_tower=bool(row.get("frozen")),
        teacher=parse_shape({**row["teacher"][1], "model_type": row["teacher"][0]}, "teacher")
        if row.get("teacher")
        else None,
        **_sharding(row, shape.hidden),
    )
    allocated, reserved = (int(row[f"peak_{kind}_gib"] * GIB) for kind in ("allocated", "reserved"))
    return Point(row["id"], run, config, allocated, reserved, row.get("split", ""))


def _task(row: Mapping[str, Any]) -> str:
    return "sft" if row.get("task") in (None, "plain") else str(row["task"])


def _trainer(row: Mapping[str, Any]) -> str:
    return str(row.get("trainer") or ("transformers" if row.get("task") in (None, "plain") else "trl"))


def _recipe(row: Mapping[str, Any]) -> Recipe:
    from envdoctor.matrix import load_matrix, tables

    stack = {"trl": row["trl"]} if row.get("trl") else {}
    rows = load_matrix().rows(tables.TrainerRow)
    if not row.get("loader"):  # nor what the trainer's own loader puts in the place of TRL's functions
        rows = [one for one in rows if one.id not in BY_LOADER]
    recipe = recipe_of(rows, _trainer(row), _task(row), stack)
    if not row.get("loader"):  # a model that the script built, and not the trainer's own loader
        recipe = replace(recipe, outer_fp32=False, padded=False, expandable_segments=False)
    recipe = replace(recipe, adapter_kernels="dropout" if row.get("kernels") else "")
    if row.get("task") == "distill":  # from texts that are there
        recipe = replace(recipe, generates=False)
    extra = row.get("extra", {})
    if extra.get("precompute_ref_log_probs"):
        recipe = replace(recipe, reference="")
    return replace(recipe, reference="before") if extra.get("beta") and row["task"] == "grpo" else recipe


def _config(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(row.get("config"), dict):
        return dict(row["config"])
    if row.get("shape"):
        kind, settings = row["shape"]
        return {**settings, "model_type": kind}
    return find_config(row["model"])


def _sharding(row: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    if row.get("fsdp"):
        config = row["fsdp"].get("fsdp_config", {}) if isinstance(row["fsdp"], dict) else {}
        return {
            "parallel": "fsdp",
            "meta_load": bool(config.get("cpu_ram_efficient_loading")),
            "offload_params": bool(config.get("cpu_offload")),
        }
    if row.get("deepspeed"):
        file = parse_deepspeed(row["deepspeed"]["zero_optimization"], row["id"], hidden)
        return {
            "parallel": f"zero{file.stage}",
            "deepspeed": file.sizes,
            "offload_optimizer": file.offload_optimizer,
            "offload_params": file.offload_params,
        }
    return {"parallel": "ddp" if row.get("gpus", 1) > 1 else "none"}
