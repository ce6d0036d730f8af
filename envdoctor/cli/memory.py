"""`envdoctor memory`: the peak GPU memory of one stated run."""

from __future__ import annotations

import argparse
from dataclasses import replace

from envdoctor.cli.output import look_of, write
from envdoctor.report import Format

EXAMPLES = (
    ("QLoRA of an 8B on a 4090", "--model llama-3.1-8b --method qlora --batch 1 --seq 4096 --gpu 'RTX 4090'"),
    ("full training on eight cards with ZeRO-3", "--model qwen2.5-7b --gpus 8 --parallel zero3 --gpu H100"),
    ("GRPO with TRL", "--model qwen2.5-1.5b --method lora --task grpo --trainer trl --gpu A100"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `memory`."""
    from envdoctor.cli.memory_options import add_run_options

    add_run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Predict and return the exit code: 0 fits or the card is unknown, 1 does not fit."""
    from envdoctor.cli.memory_options import constants_of, gpu_of, run_of, stack_of, tier_of
    from envdoctor.memory.answer import answer
    from envdoctor.memory.curves import curves_of
    from envdoctor.memory.report import render

    gpu, edition = gpu_of(args)
    stack = stack_of(args)
    wanted = run_of(args, gpu)
    constants = constants_of(stack, gpu)
    gpu_bytes = gpu.memory_total_bytes if gpu else None
    prediction = answer(wanted, constants, gpu_bytes, stack, tier_of(args, wanted))
    if edition:
        prediction = replace(prediction, assumptions=(edition, *prediction.assumptions))
    title = f"{args.model}, {args.method if args.task != 'serve' else 'serving'}"
    drawn = args.format is not Format.JSON and wanted.shape.known
    curves = curves_of(wanted, constants, gpu_bytes) if drawn else ()
    write(args, render(prediction, gpu_bytes, args.format, look_of(args), title=title, curves=curves))
    return 1 if prediction.fits(gpu_bytes) is False else 0
