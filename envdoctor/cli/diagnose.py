"""`envdoctor diagnose`: facts from here, from another interpreter or from a paste, judged."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from io import BufferedReader
from typing import cast

from envdoctor.cli.output import colour_wanted, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `diagnose`."""
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="FILE",
        help="judge a paste, a recording or a bundle instead of this machine; - is standard input",
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter to examine")
    parser.add_argument(
        "--gpu", action="append", default=[], metavar="NAME", help="the card to judge for (repeatable)"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="run the smoke kernels and judge with their verdicts"
    )
    parser.add_argument("--share", action="store_true", help="redact what identifies you or the machine")
    parser.add_argument(
        "--select", action="append", default=[], metavar="IDS", help="only these checks (commas)"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="IDS", help="not these checks (commas)"
    )
    parser.add_argument("--fail-on", choices=("error", "warning", "note"), default="error", metavar="LEVEL")


def run(args: argparse.Namespace) -> int:
    """Diagnose and return the exit code."""
    from envdoctor.diagnosis import diagnose
    from envdoctor.findings import Severity
    from envdoctor.report import render

    diagnosis = diagnose(
        args.sources or standard_input(args),
        python=args.python,
        gpus=args.gpu,
        smoke=args.smoke,
        select=split_ids(args.select),
        ignore=split_ids(args.ignore),
        fail_on=Severity(args.fail_on),
    )
    if args.share:
        from envdoctor.bundle import redact_diagnosis

        diagnosis = redact_diagnosis(diagnosis)
    write(args, render(diagnosis, args.format, colour=colour_wanted(args)))
    return diagnosis.exit_code


def standard_input(args: argparse.Namespace) -> tuple[str, ...]:
    """Return `-` where standard input holds a text and nothing else says what to examine.

    A terminal, a closed or an empty input means this machine; a pipe is waited for, as `cat` does.
    """
    if args.python or args.smoke or sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ()
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return ()
        reader = cast("BufferedReader", sys.stdin.buffer)
        return ("-",) if reader.peek(1) else ()
    except (OSError, ValueError):
        return ()


def split_ids(values: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of repeated, comma-separated options."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
