"""`envdoctor fleet`: many nodes probed, and one answer for the cluster."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.diagnose import split_ids
from envdoctor.cli.output import colour_wanted, write
from envdoctor.errors import InputError

if TYPE_CHECKING:
    from envdoctor.fleet.answer import FleetAnswer
    from envdoctor.fleet.carriage import Cargo
    from envdoctor.fleet.reply import Take
    from envdoctor.matrix import Matrix

    Ask = tuple[Callable[[Take], None], int]

_DEFAULT_DEADLINE_S = 60.0
_DEFAULT_FANOUT = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fleet`."""
    where = parser.add_argument_group("which nodes (one of these)").add_mutually_exclusive_group(
        required=True
    )
    where.add_argument("--hosts", metavar="NODESET", help="ssh to node[001-064] or @group (ClusterShell)")
    where.add_argument("--slurm", action="store_true", help="the allocation one is in, else all free nodes")
    where.add_argument("--kubernetes", action="store_true", help="a Job on every node, through kubectl")
    where.add_argument("--ray", metavar="ADDRESS", help="every node of that Ray cluster (auto: the one here)")
    where.add_argument("--facts", metavar="DIR", help="facts that nodes wrote there, one *.json a node")
    _add_ways(parser.add_argument_group("how they are reached"))
    _add_judgement(parser.add_argument_group("what is judged"))


def _add_ways(group: argparse._ArgumentGroup) -> None:
    option = group.add_argument
    option("--deadline", type=_seconds, default=_DEFAULT_DEADLINE_S, metavar="S", help="for each node (60)")
    option("--python", metavar="PATH", help="the interpreter to run and to examine on the nodes")
    option(
        "--fanout", type=_number, default=_DEFAULT_FANOUT, metavar="N", help="nodes at a time by ssh (128)"
    )
    option("--worker", default="ssh", metavar="NAME", help="ClusterShell's worker: ssh, rsh, pdsh or exec")
    option("--partition", metavar="NAME", help="Slurm's partition")
    option(
        "--launcher-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="handed to srun or ssh (repeatable)",
    )
    option("--image", metavar="IMAGE", help="with --kubernetes: the image that holds what is examined")
    option(
        "--namespace", default="default", metavar="NAME", help="with --kubernetes: where the Jobs are made"
    )
    option("--selector", default="", metavar="LABELS", help="with --kubernetes: only nodes with these labels")
    option("--gpus-per-node", type=int, default=0, metavar="N", help="with --kubernetes: GPUs a Job asks for")


def _add_judgement(group: argparse._ArgumentGroup) -> None:
    option = group.add_argument
    option("--baseline", metavar="FILE", help="an accepted state: a former answer in JSON")
    option("--select", action="append", default=[], metavar="IDS", help="only these checks (commas)")
    option("--ignore", action="append", default=[], metavar="IDS", help="not these checks (commas)")
    option(
        "--ignore-fact", action="append", default=[], metavar="NAMES", help="facts that may differ (globs)"
    )
    option("--pin", action="append", default=[], metavar="REQ", help="pins that hold on every kind of node")
    option("--profile", metavar="MODEL", help="a training profile for the smallest card")
    option("--fail-on", choices=("error", "warning", "note"), default="error", metavar="LEVEL")


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
    from envdoctor.fleet.assembly import agreement_of, answer, collect
    from envdoctor.fleet.baseline import compare, read_baseline
    from envdoctor.fleet.report import render
    from envdoctor.matrix import load_matrix

    accepted = read_baseline(Path(args.baseline)) if args.baseline else None
    matrix = load_matrix()
    uncompared = split_ids(args.ignore_fact)
    read, total = _transport(args)
    told = answer(
        collect(read, _progress_line(args, total)),
        matrix,
        select=split_ids(args.select),
        ignore=split_ids(args.ignore),
        uncompared=uncompared,
        fail_on=Severity(args.fail_on),
    )
    if accepted is not None:
        told = compare(told, accepted, agreement_of(matrix, uncompared), args.baseline)
    told = _planned(args, told, matrix)
    write(args, render(told, args.format, colour_wanted(args)))
    return told.exit_code


def _planned(args: argparse.Namespace, told: FleetAnswer, matrix: Matrix) -> FleetAnswer:
    """Return the answer with the pins and the profile that were asked for."""
    if args.pin:
        from envdoctor.fleet.pinning import pin_fleet

        told = replace(told, pins=pin_fleet(told.groups, args.pin, matrix))
    if args.profile:
        from envdoctor.fleet.sizing import profile_fleet

        told = replace(told, profile=profile_fleet(told.groups, args.profile, matrix))
    return told


def _transport(args: argparse.Namespace) -> Ask:
    """Return what asks the nodes, and how many there are."""
    if args.facts:
        from envdoctor.fleet.transports.folder import list_files, read_folder

        files = list_files(Path(args.facts))
        return lambda take: read_folder(files, take), len(files)
    from envdoctor.fleet.carriage import pack

    cargo = pack(args.deadline, args.python)
    if args.slurm:
        return _slurm(args, cargo)
    if args.kubernetes:
        return _kubernetes(args, cargo)
    return _ray(args, cargo) if args.ray else _hosts(args, cargo)


def _hosts(args: argparse.Namespace, cargo: Cargo) -> Ask:
    from envdoctor.fleet.transports.clustershell import WORKERS, parse_hosts, run_on_hosts

    if args.worker not in WORKERS:
        raise InputError(f"--worker {args.worker}: one of {', '.join(WORKERS)}")
    nodes = parse_hosts(args.hosts)

    def ask(take: Take) -> None:
        run_on_hosts(
            nodes,
            cargo,
            take,
            deadline_s=args.deadline,
            fanout=args.fanout,
            worker=args.worker,
            arguments=args.launcher_arg,
        )

    return ask, len(nodes)


def _slurm(args: argparse.Namespace, cargo: Cargo) -> Ask:
    from envdoctor.fleet.transports.slurm import find_nodes, run_in_slurm

    nodes = find_nodes(os.environ, args.partition)
    total = len(nodes.free) + len(nodes.unreachable)
    if not total:
        raise InputError(f"--partition {args.partition}: Slurm has no node there")
    arguments = [*([f"--partition={args.partition}"] if args.partition else []), *args.launcher_arg]
    way = {"deadline_s": args.deadline, "arguments": arguments}
    return lambda take: run_in_slurm(nodes, cargo, take, **way), total


def _kubernetes(args: argparse.Namespace, cargo: Cargo) -> Ask:
    from envdoctor.fleet.transports.kubernetes import JobSettings, find_nodes, run_in_kubernetes

    if not args.image:
        raise InputError("--kubernetes needs --image: the image that holds what is examined, and a Python")
    settings = JobSettings(args.image, args.namespace, args.gpus_per_node, args.selector)
    nodes = find_nodes(settings)
    if not nodes:
        raise InputError(f"--selector {args.selector}: Kubernetes has no node with it")
    return lambda take: run_in_kubernetes(nodes, cargo, take, settings, deadline_s=args.deadline), len(nodes)


def _ray(args: argparse.Namespace, cargo: Cargo) -> Ask:
    from envdoctor.fleet.transports.ray_cluster import connect, run_in_ray

    nodes = connect(args.ray)
    return lambda take: run_in_ray(nodes, cargo, take, deadline_s=args.deadline), len(nodes)


def _progress_line(args: argparse.Namespace, total: int) -> Callable[[int], None] | None:
    if args.quiet or not sys.stderr.isatty():
        return None

    def show(done: int) -> None:
        sys.stderr.write(f"\r\x1b[K{done}/{total} nodes" if done < total else "\r\x1b[K")
        sys.stderr.flush()

    return show
