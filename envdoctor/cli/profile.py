"""`envdoctor profile`: the fastest memory-safe setting, in a framework's own format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.output import look_of, note, write
from envdoctor.cli.parsing import NAMES, TRAINED, add, add_flag, add_list

if TYPE_CHECKING:
    from envdoctor.profile.choosing import Profile

EXAMPLES = (
    (
        "the fastest setting that fits a 4090, for LLaMA-Factory",
        "--model qwen2.5-7b --gpu 'RTX 4090' --for llamafactory -o run",
    ),
    ("full training on eight cards", "--model llama-3.1-8b --method full --gpus 8 --gpu A100"),
    ("serving", "--model qwen2.5-7b --for vllm --gpu L40S"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `profile`."""
    methods, tasks = ("auto", *NAMES), ("sft", "dpo", "reward", "grpo", "serve")
    add(parser, "--model", "M", "a folder, config.json, known name or Hub id", required=True)
    add(
        parser,
        "--method",
        "METHOD",
        f"what is trained: auto, by what fits; {TRAINED}",
        choices=methods,
        default="auto",
    )
    used = "sft: fine-tuning; dpo, reward: of pairs; grpo: reinforcement; serve: vLLM (what --for is for)"
    add(parser, "--task", "TASK", used, choices=tasks)
    add(parser, "--seq", "N", "tokens of the longest sample (2048)", type=int)
    add(parser, "--shortest-row", "N", "tokens of the shortest sample (all as long as --seq)", type=int)
    add(parser, "--global-batch", "N", "samples of one optimizer step (16)", type=int)
    add_list(parser, "--gpu", "NAME", "a card in place of this machine's (repeatable)")
    add(parser, "--gpus", "N", "how many of that card", type=int)
    add(parser, "--parallel", "P", "only none, ddp, zero1, zero2, zero3 or fsdp")
    add(parser, "--optim", "NAME", "the optimizer by transformers' name, galore_adamw say (by what fits)")
    add(parser, "--optim-rank", "N", "rank of GaLore's and APOLLO's projections", type=int, default=0)
    add(parser, "--trained-layers", "N", "layers that freeze and lisa train at a time", type=int, default=0)
    add(parser, "--virtual-tokens", "N", "tokens that prompt and prefix train", type=int, default=0)
    add(parser, "--lora-rank", "N", "rank of the adapters", type=int, default=8)
    add(parser, "--beside", "GIB", "what others hold of each card", type=float, default=0.0)
    add(parser, "--stack", "NAME=VERSION,…", "versions to write for")
    add(parser, "--target", "FILE", "facts, pins or a paste that tell versions and cards")
    add(parser, "--python", "PATH", "the interpreter whose versions count")
    add(parser, "--for", "FRAMEWORK", "whose files to write", dest="framework")
    add_flag(parser, "--validate", "run it for a few steps on this machine's GPU")


def run(args: argparse.Namespace) -> int:
    """Search, write, perhaps measure; 0 fits, 1 nothing does."""
    from envdoctor.api import choose_profile

    profile = choose_profile(
        args.model,
        gpus=args.gpu,
        count=args.gpus,
        method=args.method,
        task=args.task,
        framework=args.framework,
        seq=args.seq,
        shortest_row=args.shortest_row,
        global_batch=args.global_batch,
        parallel=args.parallel,
        lora_rank=args.lora_rank,
        optim=args.optim,
        optim_rank=args.optim_rank,
        trained_layers=args.trained_layers,
        virtual_tokens=args.virtual_tokens,
        beside_gib=args.beside,
        stack=args.stack,
        target=args.target,
        python=args.python,
        validate=args.validate,
    )
    _write(args, profile)
    return profile.exit_code


def _write(args: argparse.Namespace, profile: Profile) -> None:
    from envdoctor.files import write_folder
    from envdoctor.profile.report import render

    if args.output and profile.files:
        folder = Path(args.output)
        write_folder(folder, profile.files)
        for name in profile.files:
            note(args, f"{folder / name} written")
    args.output = None
    write(args, render(profile, args.format, look_of(args)))
