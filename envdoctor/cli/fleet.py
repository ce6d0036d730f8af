"""`envdoctor fleet`: many nodes probed, and one answer for the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdoctor.cli.output import Progress, look_of, write
from envdoctor.cli.parsing import Group, add, add_flag, add_list, add_selection, seconds, split_list

if TYPE_CHECKING:
    from envdoctor.fleet.answer import FleetAnswer
    from envdoctor.fleet.merge import Merge
    from envdoctor.fleet.reaching import Cluster
    from envdoctor.matrix import Matrix


EXAMPLES = (
    ("nodes of Slurm", "--slurm"),
    ("nodes by name over ssh", "--hosts node[01-16]"),
    ("facts that were gathered before", "--facts facts/"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fleet`."""
    titled = parser.add_argument_group("which nodes (one of these)")
    where = titled.add_mutually_exclusive_group(required=True)
    add(where, "--hosts", "NODESET", "ssh to node[001-064] or @group (ClusterShell)")
    add_flag(where, "--slurm", "the allocation one is in, else all free nodes")
    add_flag(where, "--kubernetes", "a Job on every node, through kubectl")
    add(where, "--ray", "ADDRESS", "every node of that Ray cluster (auto: the one here)")
    add(where, "--facts", "DIR", "facts that nodes wrote there, one *.json a node")
    _add_ways(parser.add_argument_group("how they are reached"))
    _add_judgement(parser.add_argument_group("what is judged and planned"))


def _add_ways(group: Group) -> None:
    add(group, "--deadline", "S", "for each node (60)", type=seconds, default=60.0)
    add(group, "--python", "PATH", "the interpreter to run and to examine on the nodes")
    add(group, "--fanout", "N", "nodes at a time by ssh (128)", type=_number, default=128)
    add(group, "--worker", "NAME", "ClusterShell's worker: ssh, rsh, pdsh or exec", default="ssh")
    add(group, "--partition", "NAME", "Slurm's partition")
    add_list(group, "--launcher-arg", "ARG", "handed to srun or ssh (repeatable)")
    add(group, "--image", "IMAGE", "with --kubernetes: the image that holds what is examined", default="")
    add(group, "--namespace", "NAME", "with --kubernetes: where the Jobs are made", default="default")
    add(group, "--selector", "LABELS", "with --kubernetes: only nodes with these labels", default="")
    add(
        group,
        "--run-as",
        "UID",
        "with --kubernetes: the user of the probe (65534)",
        type=_user,
        default=65_534,
    )
    add(group, "--gpus-per-node", "N", "with --kubernetes: GPUs a Job asks for", type=int, default=0)
    add(group, "--master", "HOST", "with --smoke: where the ranks meet (the first node)")
    add(group, "--port", "PORT", "with --smoke: its free port (29533)", type=_number, default=29_533)


def _add_judgement(group: Group) -> None:
    add_flag(group, "--smoke", "run the smoke kernels on every node, and one all-reduce")
    add(group, "--expect", "FILE", "what the site wants of its nodes: [[expect]] tables in TOML")
    add(group, "--group-by", "WAY", "compare within: auto, partition, gpu or none (auto)", default="auto")
    add(group, "--baseline", "FILE", "an accepted state: a former answer in JSON")
    add_list(group, "--pin", "REQ", "pins that hold on every kind of node")
    add(group, "--profile", "MODEL", "a training profile for the smallest card")
    add_list(group, "--ignore-fact", "NAMES", "facts that may differ (globs)")
    add_flag(group, "--share", "redact what identifies you, the nodes or the site")
    add_selection(group)


def _user(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text}: no user's number")
    return number


def _number(text: str) -> int:
    number = int(text)
    if not 0 < number <= 100_000:
        raise argparse.ArgumentTypeError(f"{text}: a number above 0")
    return number


def run(args: argparse.Namespace) -> int:
    """Collect, judge, plan, write, and return the exit code; whatever ends it early ends what it started."""
    from envdoctor.processes import ended_by_signals

    with ended_by_signals():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from envdoctor.findings import Severity
    from envdoctor.fleet.assembly import agreement_of, answer
    from envdoctor.fleet.baseline import compare, read_baseline
    from envdoctor.fleet.expecting import read_expectations
    from envdoctor.fleet.partitions import home_partitions, memberships
    from envdoctor.fleet.pools import check_way
    from envdoctor.fleet.report import render
    from envdoctor.matrix import load_matrix

    accepted = read_baseline(Path(args.baseline)) if args.baseline else None
    expected = read_expectations(Path(args.expect)) if args.expect else ()
    check_way(args.group_by)
    matrix = load_matrix()
    uncompared = split_list(args.ignore_fact)
    cluster = None if args.facts else _cluster(args)
    partitions = cluster.partitions if cluster else {}
    told = answer(
        _collected(args, cluster),
        matrix,
        select=split_list(args.select),
        ignore=split_list(args.ignore),
        uncompared=uncompared,
        fail_on=Severity(args.fail_on),
        group_by=args.group_by,
        partitions=home_partitions(partitions),
        memberships=memberships(partitions),
        expected=expected,
    )
    if accepted is not None:
        told = compare(told, accepted, agreement_of(matrix, uncompared), args.baseline)
    if args.smoke:
        told = _smoked(args, told, cluster)
    told = _planned(args, told, matrix)
    if args.share:
        from envdoctor.fleet.sharing import redact_answer

        told = redact_answer(told)
    write(args, render(told, args.format, look_of(args), args.all))
    return told.exit_code


def _collected(args: argparse.Namespace, cluster: Cluster | None) -> Merge:
    from envdoctor.fleet.assembly import collect

    if cluster is None:
        from envdoctor.fleet.transports.folder import list_files, read_folder

        files = list_files(Path(args.facts))
        return collect(lambda take: read_folder(files, take), _progress_line(args, len(files)), live=False)
    from envdoctor.fleet.carriage import pack
    from envdoctor.fleet.smoking import read_smokes

    cargo = pack(args.deadline, args.python, read_smokes() if args.smoke else b"")
    return collect(lambda take: cluster.ask(cargo, take), _progress_line(args, cluster.count))


def _cluster(args: argparse.Namespace) -> Cluster:
    from envdoctor.fleet import reaching
    from envdoctor.fleet.transports.kubernetes import JobSettings

    deadline_s = args.deadline
    if args.slurm:
        return reaching.slurm_cluster(args.partition, deadline_s=deadline_s, arguments=args.launcher_arg)
    if args.kubernetes:
        settings = JobSettings(args.image, args.namespace, args.gpus_per_node, args.selector, args.run_as)
        return reaching.kubernetes_cluster(settings, deadline_s=deadline_s)
    if args.ray:
        return reaching.connected_ray(args.ray, deadline_s=deadline_s)
    return reaching.ssh_cluster(
        args.hosts,
        deadline_s=deadline_s,
        fanout=args.fanout,
        worker=args.worker,
        arguments=args.launcher_arg,
    )


def _smoked(args: argparse.Namespace, told: FleetAnswer, cluster: Cluster | None) -> FleetAnswer:
    """Return the answer with how an all-reduce over the nodes that answered ended."""
    from envdoctor.fleet.nodeset import natural_key
    from envdoctor.fleet.smoking import pack_collective, run_collective

    nodes = sorted((node for group in told.groups for node in group.nodes), key=natural_key)
    if cluster is None or args.kubernetes or len(nodes) < 2:
        return told
    cargo = pack_collective(args.python, args.deadline, args.master or nodes[0], args.port, len(nodes))
    return replace(told, collective=run_collective(lambda take: cluster.ask(cargo, take, nodes), nodes))


def _planned(args: argparse.Namespace, told: FleetAnswer, matrix: Matrix) -> FleetAnswer:
    """Return the answer with the pins and the profile that were asked for."""
    if args.pin:
        from envdoctor.fleet.pinning import pin_fleet

        told = replace(told, pins=pin_fleet(told.groups, args.pin, matrix))
    if args.profile:
        from envdoctor.fleet.sizing import profile_fleet

        told = replace(told, profile=profile_fleet(told.groups, args.profile, matrix))
    return told


def _progress_line(args: argparse.Namespace, total: int) -> Callable[[int], None]:
    line = Progress(args)
    return lambda done: line.step(done, total, "nodes") if done < total else line.end()
