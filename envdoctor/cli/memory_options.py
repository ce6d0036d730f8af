"""The options that state a run."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING

from envdoctor.cli.parsing import TRAINED, add, add_flag

if TYPE_CHECKING:
    from envdoctor.memory.stated import StatedRun

COUNTS = {
    "batch": (1, "rows a card takes in one step"),
    "seq": (2048, "tokens of a row (prompt and answer together)"),
    "grad-accum": (1, "steps whose gradients are summed before the optimizer's"),
    "lora-rank": (8, "rank of the adapters"),
    "gpus": (1, "cards of this run, all nodes together"),
    "tp": (1, "cards that share each layer (tensor parallel)"),
    "pp": (1, "groups of layers on cards of their own (pipeline parallel)"),
    "max-model-len": (None, "serving: longest request in tokens (default: the model's own)"),
    "max-num-seqs": (None, "serving: requests at a time (default: the engine's own)"),
    "max-completion": (None, "GRPO, PPO: tokens generated for a prompt, of --seq (default: the trainer's)"),
    "num-generations": (None, "GRPO: completions of one prompt, a share of the whole batch"),
}
"""Options with a number: its default, and what it counts."""

SWITCHES = {
    "--grad-ckpt": "gradient checkpointing: keep each layer's input alone, compute the rest again (on)",
    "--double-quant": "quantize the constants of 4-bit weights as well (on)",
    "--upcast-kbit": "norms and head in fp32, as prepare_model_for_kbit_training makes them (on)",
}


TASKS = "fine-tuning, preferences, reinforcement, or vLLM (train is sft)"


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare everything that states a run."""
    tasks = ("sft", "train", "dpo", "kto", "orpo", "reward", "grpo", "ppo", "serve")
    trainers = ("transformers", "trl", "llamafactory", "ms-swift", "axolotl")
    add(parser, "--model", "M", "folder, config.json, catalogue name or Hub id", required=True)
    add(parser, "--method", "full|lora|qlora", f"what is trained: {TRAINED} (full)", default="full")
    add(parser, "--task", "TASK", f"{', '.join(tasks)}: {TASKS}", choices=tasks, default="sft")
    whose = f"whose loss and upcasts: {', '.join(trainers)} (transformers; trl but for sft)"
    add(parser, "--trainer", "TRAINER", whose, choices=trainers)
    add_flag(parser, "--packing", "rows follow each other without padding")
    for name, (default, meaning) in COUNTS.items():
        said = meaning if default is None else f"{meaning} ({default})"
        add(parser, f"--{name}", "N", said, type=int, default=default)
    _add_numbers(parser)
    _add_sharding(parser)
    add(parser, "--vllm-utilization", "F", "share of the card that vLLM may take", type=float)
    add(parser, "--gpu", "NAME", "the card it must fit")
    add(parser, "--stack", "NAME=VERSION,…", "versions (default: the examined environment's)")
    add(parser, "--target", "FILE", "facts, pins or a paste that tell versions and the card")
    add(parser, "--python", "PATH", "the interpreter to examine")
    how = parser.add_mutually_exclusive_group()
    add_flag(how, "--trace", "trace the real model class on the CPU (needs torch there)")
    add_flag(how, "--measure", "run a two-layer slice on this machine's card")


def _add_numbers(parser: argparse.ArgumentParser) -> None:
    switch = argparse.BooleanOptionalAction
    add(parser, "--dtype", "bf16|fp16|fp32", "what the weights are loaded as (bf16)", default="bf16")
    mixed = "what autocast computes in; none: everything in --dtype (bf16)"
    add(parser, "--amp", "bf16|fp16|none", mixed, default="bf16")
    optimizer = "the optimizer by transformers' name, such as adamw_8bit (adamw_torch_fused)"
    add(parser, "--optim", "NAME", optimizer, default="adamw_torch_fused")
    kernels = "eager keeps all scores, sdpa is torch's own, flash_attention_2 the package (sdpa)"
    add(parser, "--attn", "eager|sdpa|flash_attention_2", kernels, default="sdpa")
    add_flag(parser, "--liger", "Liger's kernels and fused loss")
    targets = "where adapters are: all linear layers, attention's, q and v alone, or those named (all)"
    add(parser, "--lora-targets", "all|attn|qv|NAME,…", targets, default="all")
    add(parser, "--lora-dropout", "P", "dropout of the adapters (0)", type=float, default=0.0)
    add(parser, "--quant", "nf4|int8", "what qlora holds the weights in: 4 or 8 bits (nf4)", default="nf4")
    for name, meaning in SWITCHES.items():
        parser.add_argument(name, action=switch, default=True, help=meaning)


def _add_sharding(parser: argparse.ArgumentParser) -> None:
    shared = (
        "ddp: each card holds all; zero1 splits the optimizer, zero2 gradients too, zero3 and fsdp the rest"
        " (default: ddp on several cards)"
    )
    add(parser, "--parallel", "none|ddp|zero1|zero2|zero3|fsdp", shared)
    add_flag(parser, "--offload-optimizer", "the optimizer's states in host memory")
    add_flag(parser, "--offload-params", "the weights in host memory")
    add(parser, "--deepspeed", "FILE", "DeepSpeed's JSON configuration")


def stated_run(args: argparse.Namespace) -> StatedRun:
    """Return the run that the options state."""
    from envdoctor.memory.stated import StatedRun

    return StatedRun(**{field.name: getattr(args, field.name) for field in fields(StatedRun)})
