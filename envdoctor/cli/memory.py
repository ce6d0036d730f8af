"""`envdoctor memory`: the peak GPU memory of one stated run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from envdoctor.cli.output import look_of, write
from envdoctor.report import Format

if TYPE_CHECKING:
    from envdoctor.facts import Facts

EXAMPLES = (
    ("QLoRA of an 8B on a 4090", "--model llama-3.1-8b --method qlora --batch 1 --seq 4096 --gpu 'RTX 4090'"),
    ("full training on eight cards with ZeRO-3", "--model qwen2.5-7b --gpus 8 --parallel zero3 --gpu H100"),
    ("GRPO with TRL", "--model qwen2.5-1.5b --method lora --task grpo --trainer trl --gpu A100"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `memory`."""
    from envdoctor.cli.memory_options import add_run_options

    add_run_options(parser)


def _facts_of(target: str) -> Facts:
    from envdoctor.diagnosis import read_facts
    from envdoctor.matrix import load_matrix

    return read_facts([target], None, load_matrix())


def run(args: argparse.Namespace) -> int:
    """Predict and return the exit code: 0 fits or the card is unknown, 1 does not fit."""
    from envdoctor.cli.memory_options import stated_run
    from envdoctor.memory.answer import answer
    from envdoctor.memory.curves import otherwise
    from envdoctor.memory.report import render
    from envdoctor.memory.stated import ask

    how = "measure" if args.measure else "trace" if args.trace else None
    facts = _facts_of(args.target) if args.target else None
    stated = stated_run(args)
    question = ask(
        args.model, stated, gpu=args.gpu, stack=args.stack, facts=facts, python=args.python, how=how
    )
    prediction = answer(question)
    title = f"{args.model}, {args.method if args.task != 'serve' else 'serving'}"
    drawn = args.format is not Format.JSON and question.run.shape.known
    curves, ways = otherwise(question, prediction) if drawn else ((), ())
    size, look = question.gpu_bytes, look_of(args)
    write(args, render(prediction, size, args.format, look, title=title, curves=curves, ways=ways))
    return 1 if prediction.fits(size) is False else 0
