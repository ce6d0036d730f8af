"""`envdoctor fleet`: many nodes probed, and one answer for the cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from envdoctor.cli.diagnose import split_ids
from envdoctor.cli.output import colour_wanted, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fleet`."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--facts", metavar="DIR", help="facts that nodes wrote there, one *.json a node")
    judged = parser.add_argument_group("what is judged")
    judged.add_argument("--select", action="append", default=[], metavar="IDS", help="only these checks")
    judged.add_argument("--ignore", action="append", default=[], metavar="IDS", help="not these checks")
    judged.add_argument(
        "--ignore-fact", action="append", default=[], metavar="NAMES", help="facts that may differ (globs)"
    )
    judged.add_argument("--fail-on", choices=("error", "warning", "note"), default="error", metavar="LEVEL")


def run(args: argparse.Namespace) -> int:
    """Collect, judge, write, and return the exit code."""
    from envdoctor.findings import Severity
    from envdoctor.fleet.assembly import answer, collect
    from envdoctor.fleet.report import render
    from envdoctor.fleet.transports.folder import list_files, read_replies

    files = list_files(Path(args.facts))
    show = _progress_line(args, len(files))
    merge = collect(read_replies(files), show)
    told = answer(
        merge,
        select=split_ids(args.select),
        ignore=split_ids(args.ignore),
        uncompared=split_ids(args.ignore_fact),
        fail_on=Severity(args.fail_on),
    )
    write(args, render(told, args.format, colour_wanted(args)))
    return told.exit_code


def _progress_line(args: argparse.Namespace, total: int) -> Callable[[int], None] | None:
    if args.quiet or not sys.stderr.isatty():
        return None

    def show(done: int) -> None:
        sys.stderr.write(f"\r\x1b[K{done}/{total} nodes" if done < total else "\r\x1b[K")
        sys.stderr.flush()

    return show
