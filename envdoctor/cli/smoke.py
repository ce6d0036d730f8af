"""`envdoctor smoke`: proof, op by op, that the examined environment computes."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import get_args

from envdoctor.cli.output import Progress, look_of, note, write
from envdoctor.cli.parsing import add, add_flag, add_list, seconds, split_list
from envdoctor.report import Drawn, as_json, draw

EXAMPLES = (
    ("the quick set on every card here", ""),
    ("quantized ops of another environment", "--python .venv/bin/python --select bnb"),
    ("how fast links, memory and products are, and should be", "--bandwidth"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `smoke`."""
    add(parser, "--python", "PATH", "the interpreter to examine")
    chosen = "names, prefixes or globs, with commas; all for every op (default: the quick set)"
    add_list(parser, "--select", "OPS", chosen)
    add_flag(parser, "--list", "name the ops and what each proves")
    add(parser, "--device", "cpu|N", "the CPU, or one card (default: all cards)")
    add_flag(parser, "--bandwidth", "measure speeds and hold them against what such cards reach")
    add_flag(parser, "--build", "build what is not built yet, for this run")
    add(parser, "--timeout", "S", "seconds an op may take (60)", type=seconds, default=60.0)


def run(args: argparse.Namespace) -> int:
    """Run the smokes and return the exit code."""
    from envdoctor.api import smoke
    from envdoctor.smokes.report import render

    patterns = split_list(args.select)
    if args.list:
        return _list(args, patterns)
    line = Progress(args)
    report = smoke(
        patterns,
        python=args.python,
        device=args.device,
        timeout_s=args.timeout,
        build=args.build,
        bandwidth=args.bandwidth,
        progress=line.step,
    )
    line.end()
    write(args, render(report, args.format, look_of(args)))
    for trouble in report.troubles:
        note(args, f"envdoctor: {trouble}")
    if report.unprovable:
        note(args, f"envdoctor: {report.unprovable}")
    return report.exit_code


def _list(args: argparse.Namespace, patterns: tuple[str, ...]) -> int:
    from envdoctor.smokes.catalogue import find_python, read_catalogue, select_ops
    from envdoctor.smokes.report import list_document
    from envdoctor.target.stack import active_python

    catalogue = read_catalogue(find_python(args.python or active_python()), args.timeout)
    for trouble in catalogue.troubles:
        note(args, f"envdoctor: {trouble}")
    ops = select_ops(catalogue.ops, patterns or ("all",))
    if args.format in get_args(Drawn):
        write(args, draw(list_document(ops), args.format, look_of(args)))
    else:
        write(args, as_json({"schema": "envdoctor.smoke-ops/1", "ops": [asdict(op) for op in ops]}))
    return 0
