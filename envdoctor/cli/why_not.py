"""`envdoctor why-not`: what forbids a version on a target, with sources."""

from __future__ import annotations

import argparse

from envdoctor.cli.output import look_of, write
from envdoctor.cli.pin import add_target_arguments, target_of

EXAMPLES = (
    ("what forbids this release on this machine", "flash-attn==2.8.3"),
    ("on another card", "torch==2.9.0 --gpu V100"),
    ("for what another machine recorded", "vllm==0.11.0 --target facts.json"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `why-not`."""
    parser.add_argument("requests", nargs="+", metavar="REQ", help="such as flash-attn==2.8.3")
    add_target_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Explain and write; 1 when something forbids it, 3 where it hangs on what is not known."""
    from envdoctor.api import why_not
    from envdoctor.solve.report import render

    answer = why_not(args.requests, **target_of(args))
    write(args, render(answer, args.format, look_of(args)))
    return {True: 1, False: 0, None: 3}[answer.forbidden]
