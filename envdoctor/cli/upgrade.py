"""`envdoctor upgrade`: what breaks in code when requirements change, and what to install."""

from __future__ import annotations

import argparse
import gc
import os
from pathlib import Path

from envdoctor.cli.output import look_of, note, write
from envdoctor.cli.parsing import add
from envdoctor.cli.pin import add_target_arguments, target_of
from envdoctor.files import replace_file

EXAMPLES = (
    ("what transformers 5 breaks in this folder", "'transformers>=5' ."),
    ("from what the project pins, and the changes as a diff", "'numpy>=2' . -r pins.txt --patch numpy2.diff"),
    ("for an environment that was recorded elsewhere", "torch==2.9.0 train.py --target freeze.txt"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `upgrade`."""
    parser.add_argument(
        "words", nargs="+", metavar="REQ|PATH", help="requirements, then files or folders of code"
    )
    add(parser, "--patch", "FILE", "write the plain renames there, as a diff")
    add_target_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Judge, solve and write; 0 nothing breaks, 1 something does or conflicts, 3 where it is not known."""
    from envdoctor.api import upgrade
    from envdoctor.upgrading.documents import render

    gc.disable()  # a short process: looking for garbage would take a tenth of its time
    requests = [word for word in args.words if not _is_path(word)]
    paths = [word for word in args.words if _is_path(word)]
    answer = upgrade(requests, paths, **target_of(args))
    if args.patch:
        replace_file(Path(args.patch), answer.judged.patch)
        note(args, f"{args.patch}: apply it with `patch -p1` or `git apply`, after reading it")
    write(args, render(answer, args.format, look_of(args)))
    return answer.exit_code


def _is_path(word: str) -> bool:
    """True for what exists, or is written as a path; a name that is both is a requirement."""
    if os.sep in word or word.endswith((".py", ".ipynb", ".yaml", ".yml", ".sh")) or word == ".":
        return True
    return os.path.exists(word) and not any(mark in word for mark in "<>=!~[")
