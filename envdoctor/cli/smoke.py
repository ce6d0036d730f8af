"""`envdoctor smoke`: proof, op by op, that the examined environment computes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from envdoctor.cli.output import colour_wanted, note, write

if TYPE_CHECKING:
    from envdoctor.smokes.settled import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `smoke`."""
    parser.add_argument("--python", metavar="PATH", help="the interpreter to examine")
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="OPS",
        help="names, prefixes or globs, with commas; all for every op (default: the quick set)",
    )
    parser.add_argument("--list", action="store_true", help="name the ops and what each proves")
    parser.add_argument("--device", metavar="cpu|N", help="the CPU, or one card (default: all cards)")
    parser.add_argument("--build", action="store_true", help="build what is not built yet, for this run")
    parser.add_argument(
        "--timeout", type=_seconds, default=60.0, metavar="S", help="seconds an op may take (60)"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds above 0")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Run the smokes and return the exit code."""
    from envdoctor.smokes import run_smokes
    from envdoctor.smokes.render import render_junit, render_text

    python = args.python or examined_python(os.environ)
    patterns = tuple(part.strip() for value in args.select for part in value.split(",") if part.strip())
    if args.list:
        return _list(args, python, patterns)
    drawn = sys.stderr.isatty() and not args.quiet
    report = run_smokes(
        python,
        patterns or None,
        args.device,
        args.timeout,
        build=args.build,
        progress=_progress_line() if drawn else None,
    )
    if drawn:
        sys.stderr.write("\r\x1b[K")
    if args.format == "json":
        write(args, json.dumps(report.to_json(), indent=2))
    elif args.format == "junit":
        write(args, render_junit(report))
    else:
        write(args, render_text(report, colour=colour_wanted(args)))
    if report.unprovable:
        note(args, f"envdoctor: {report.unprovable}")
    return report.exit_code


def examined_python(variables: Mapping[str, str]) -> str:
    """Return the interpreter of the active virtual or conda environment, else our own."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = os.path.join(variables.get(name, ""), "bin", "python")
        if variables.get(name) and os.access(python, os.X_OK):
            return python
    return sys.executable


def _list(args: argparse.Namespace, python: str, patterns: tuple[str, ...]) -> int:
    from envdoctor.smokes.catalogue import find_python, read_catalogue, select_ops
    from envdoctor.smokes.render import render_list

    catalogue = read_catalogue(find_python(python), args.timeout)
    for trouble in catalogue.troubles:
        note(args, f"envdoctor: {trouble}")
    ops = select_ops(catalogue.ops, patterns or ("all",))
    if args.format == "text":
        write(args, render_list(ops))
    else:
        write(
            args, json.dumps({"schema": "envdoctor.smoke-ops/1", "ops": [asdict(op) for op in ops]}, indent=2)
        )
    return 0


def _progress_line() -> Progress:
    width = os.get_terminal_size(sys.stderr.fileno()).columns

    def show(done: int, total: int, doing: str) -> None:
        sys.stderr.write(f"\r\x1b[K{f'{done}/{total} {doing}'[: width - 1]}")
        sys.stderr.flush()

    return show
