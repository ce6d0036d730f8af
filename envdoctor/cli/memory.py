"""`envdoctor memory`: the peak GPU memory of one stated run."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from envdoctor.cli.output import write

if TYPE_CHECKING:
    from envdoctor.memory import Prediction
    from envdoctor.memory.curves import Curve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `memory`."""
    from envdoctor.cli.memory_options import add_run_options

    add_run_options(parser)


def run(args: argparse.Namespace) -> int:
    """Predict and return the exit code: 0 fits or the card is unknown, 1 does not fit."""
    from envdoctor.cli.memory_options import constants_of, gpu_of, run_of, stack_of, tier_of
    from envdoctor.memory.answer import answer

    gpu, edition = gpu_of(args)
    stack = stack_of(args)
    wanted = run_of(args, gpu)
    constants = constants_of(stack, gpu)
    gpu_bytes = gpu.memory_total_bytes if gpu else None
    prediction = answer(wanted, constants, gpu_bytes, stack, tier_of(args, wanted))
    if edition:
        prediction = replace(prediction, assumptions=(edition, *prediction.assumptions))
    if args.format == "json":
        write(args, json.dumps(prediction.to_json(gpu_bytes), indent=2))
    else:
        from envdoctor.memory.curves import curves_of

        write(args, _describe(args, prediction, gpu_bytes, curves_of(wanted, constants, gpu_bytes)))
    return 1 if prediction.fits(gpu_bytes) is False else 0


def _describe(
    args: argparse.Namespace, prediction: Prediction, gpu_bytes: int | None, curves: tuple[Curve, ...]
) -> str:
    from envdoctor.memory.describe import describe_html, describe_text

    title = f"{args.model}, {args.method if args.task != 'serve' else 'serving'}"
    if args.format == "html":
        return describe_html(prediction, gpu_bytes, title, curves)
    return describe_text(prediction, gpu_bytes, title, curves)
