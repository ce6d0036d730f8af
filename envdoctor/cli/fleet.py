"""`envdoctor fleet`: many nodes probed, and one answer for the cluster."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.diagnose import split_ids
from envdoctor.cli.output import colour_wanted, write
from envdoctor.errors import InputError

if TYPE_CHECKING:
    from envdoctor.fleet.reply import Take

_DEFAULT_DEADLINE_S = 60.0
_DEFAULT_FANOUT = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fleet`."""
    where = parser.add_argument_group("which nodes (one of these)").add_mutually_exclusive_group(
        required=True
    )
    where.add_argument(
        "--hosts", metavar="NODESET", help="ssh to these, such as node[001-064] (ClusterShell)"
    )
    where.add_argument("--slurm", action="store_true", help="the allocation one is in, else the free nodes")
    where.add_argument("--facts", metavar="DIR", help="facts that nodes wrote there, one *.json a node")
    how = parser.add_argument_group("how they are reached")
    how.add_argument(
        "--deadline",
        type=_seconds,
        default=_DEFAULT_DEADLINE_S,
        metavar="S",
        help="a node may take so long (60)",
    )
    how.add_argument(
        "--fanout",
        type=_number,
        default=_DEFAULT_FANOUT,
        metavar="N",
        help="nodes asked at a time over ssh (128)",
    )
    how.add_argument("--python", metavar="PATH", help="the interpreter to run and examine on the nodes")
    how.add_argument(
        "--worker", default="ssh", metavar="NAME", help="ClusterShell's worker: ssh, rsh, pdsh or exec"
    )
    how.add_argument("--partition", metavar="NAME", help="Slurm's partition")
    how.add_argument(
        "--launcher-arg", action="append", default=[], metavar="ARG", help="handed to srun (repeatable)"
    )
    judged = parser.add_argument_group("what is judged")
    judged.add_argument("--select", action="append", default=[], metavar="IDS", help="only these checks")
    judged.add_argument("--ignore", action="append", default=[], metavar="IDS", help="not these checks")
    judged.add_argument(
        "--ignore-fact", action="append", default=[], metavar="NAMES", help="facts that may differ (globs)"
    )
    judged.add_argument("--fail-on", choices=("error", "warning", "note"), default="error", metavar="LEVEL")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text}: seconds above 0")
    return seconds


def _number(text: str) -> int:
    number = int(text)
    if not 0 < number <= 100_000:
        raise argparse.ArgumentTypeError(f"{text}: a number above 0")
    return number


def run(args: argparse.Namespace) -> int:
    """Collect, judge, write, and return the exit code."""
    from envdoctor.findings import Severity
    from envdoctor.fleet.assembly import answer, collect
    from envdoctor.fleet.report import render

    read, total = _transport(args)
    merge = collect(read, _progress_line(args, total))
    told = answer(
        merge,
        select=split_ids(args.select),
        ignore=split_ids(args.ignore),
        uncompared=split_ids(args.ignore_fact),
        fail_on=Severity(args.fail_on),
    )
    write(args, render(told, args.format, colour_wanted(args)))
    return told.exit_code


def _transport(args: argparse.Namespace) -> tuple[Callable[[Take], None], int]:
    """Return what asks the nodes, and how many there are."""
    if args.facts:
        from envdoctor.fleet.transports.folder import list_files, read_folder

        files = list_files(Path(args.facts))
        return lambda take: read_folder(files, take), len(files)
    return _slurm(args) if args.slurm else _hosts(args)


def _hosts(args: argparse.Namespace) -> tuple[Callable[[Take], None], int]:
    from envdoctor.fleet.carriage import pack
    from envdoctor.fleet.transports.clustershell import WORKERS, parse_hosts, run_on_hosts

    if args.worker not in WORKERS:
        raise InputError(f"--worker {args.worker}: one of {', '.join(WORKERS)}")
    nodes = parse_hosts(args.hosts)
    cargo = pack(args.deadline, args.python)

    def ask(take: Take) -> None:
        run_on_hosts(nodes, cargo, take, deadline_s=args.deadline, fanout=args.fanout, worker=args.worker)

    return ask, len(nodes)


def _slurm(args: argparse.Namespace) -> tuple[Callable[[Take], None], int]:
    from envdoctor.fleet.carriage import pack
    from envdoctor.fleet.transports.slurm import find_nodes, run_in_slurm

    nodes = find_nodes(os.environ, args.partition)
    total = len(nodes.free) + len(nodes.unreachable)
    if not total:
        raise InputError(f"--partition {args.partition}: Slurm has no node there")
    cargo = pack(args.deadline, args.python)
    arguments = [*([f"--partition={args.partition}"] if args.partition else []), *args.launcher_arg]

    def ask(take: Take) -> None:
        run_in_slurm(nodes, cargo, take, deadline_s=args.deadline, arguments=arguments)

    return ask, total


def _progress_line(args: argparse.Namespace, total: int) -> Callable[[int], None] | None:
    if args.quiet or not sys.stderr.isatty():
        return None

    def show(done: int) -> None:
        sys.stderr.write(f"\r\x1b[K{done}/{total} nodes" if done < total else "\r\x1b[K")
        sys.stderr.flush()

    return show
