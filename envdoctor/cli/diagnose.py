"""`envdoctor diagnose`: facts from here, from another interpreter or from a paste, judged."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from io import BufferedReader
from typing import TYPE_CHECKING, Any, cast

from envdoctor.cli.output import look_of, write
from envdoctor.cli.parsing import add, add_flag, add_list, add_selection, split_list
from envdoctor.errors import InputError
from envdoctor.report import Format

if TYPE_CHECKING:
    from envdoctor.diagnosis import PlanWish
    from envdoctor.findings import Diagnosis

EXAMPLES = (
    ("this machine, and the environment that is active", ""),
    ("what somebody pasted: an issue, a log, a pip freeze", "--from issue.md"),
    (
        "another interpreter, for a card that is not in this machine",
        "--python .venv/bin/python --gpu 'RTX 4090'",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `diagnose`."""
    judged = "judge a paste, a recording or a bundle instead of this machine; - is standard input"
    add_list(parser, "--from", "FILE", judged, dest="sources")
    each = "judge each of these files by itself, as they stand in a repository"
    add_list(parser, "--each", "FILE", each, nargs="+")
    add(parser, "--python", "PATH", "the interpreter to examine")
    add(parser, "--image", "FILE.tar", "judge a saved container image (docker save, OCI) without running it")
    add_list(parser, "--gpu", "NAME", "the card to judge for (repeatable)")
    add(parser, "--driver", "V", "the NVIDIA driver to judge for")
    add_flag(parser, "--smoke", "run the smoke kernels and judge with their verdicts")
    add_list(parser, "--code", "PATH", "judge this code, too, with what is installed (repeatable)")
    dated = (
        "let the package index tell in which releases a traceback's lines stand, and what the plan downloads"
    )
    add_flag(parser, "--online", dated)
    add_plan_wishes(parser)
    add_flag(parser, "--share", "redact what identifies you or the machine")
    add_selection(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose and return the exit code."""
    from envdoctor.report.rendering import render

    diagnosis = _of_each(args) if args.each else _of_all(args)
    if args.share or args.format is Format.COMMENT:
        from envdoctor.bundling import redact_diagnosis

        diagnosis = redact_diagnosis(diagnosis)
    write(args, render(diagnosis, args.format, look_of(args), args.all))
    return diagnosis.exit_code


def add_plan_wishes(parser: argparse.ArgumentParser) -> None:
    """Declare what a person may wish of the plan."""
    add_list(parser, "--keep", "NAME", "plan without changing this package (repeatable)")
    how = "least-change: plan the fewest changes; newest: what must move goes as far as it can"
    prefers = ("least-change", "newest")
    add(parser, "--prefer", "GOAL", how, choices=prefers, default=prefers[0])


def plan_wish(args: argparse.Namespace) -> PlanWish:
    """Return what `add_plan_wishes` declared."""
    from envdoctor.diagnosis import PlanWish

    return PlanWish(split_list(args.keep), args.prefer == "newest")


def _of_all(args: argparse.Namespace) -> Diagnosis:
    from envdoctor.diagnosis import diagnose

    return diagnose(
        args.sources or standard_input(args),
        python=args.python,
        smoke=args.smoke,
        code=args.code,
        online=args.online,
        wish=plan_wish(args),
        driver=args.driver,
        image=args.image,
        **_judged(args),
    )


def _of_each(args: argparse.Namespace) -> Diagnosis:
    from envdoctor.several import diagnose_each

    for name in ("sources", "python", "image", "driver", "smoke", "code", "online", "keep"):
        if getattr(args, name):
            option = "from" if name == "sources" else name
            raise InputError(f"--each: judges files by themselves, without --{option}")
    return diagnose_each([file for files in args.each for file in files], **_judged(args))


def _judged(args: argparse.Namespace) -> dict[str, Any]:
    from envdoctor.findings import Severity

    chosen = {"select": split_list(args.select), "ignore": split_list(args.ignore)}
    return {"gpus": args.gpu, "fail_on": Severity(args.fail_on), **chosen}


def standard_input(args: argparse.Namespace) -> tuple[str, ...]:
    """Return `-` where standard input holds a text and nothing else says what to examine.

    A terminal, a closed or an empty input means this machine; a pipe is waited for, as `cat` does.
    """
    if args.python or args.smoke or args.image or sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ()
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return ()
        reader = cast("BufferedReader", sys.stdin.buffer)
        return ("-",) if reader.peek(1) else ()
    except (OSError, ValueError):
        return ()
