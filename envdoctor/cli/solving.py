"""From the command line of `pin` and `why-not` to a goal: the target, the request, what is installed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.facts import ComputeCapability, DriverVersion, Facts
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.solve.nodes import Context, Options
from envdoctor.solve.requests import Request, parse_day, parse_requests, read_requests
from envdoctor.solve.solver import Goal
from envdoctor.solve.target import Card, Target, parse_platform, parse_python, this_platform, this_python
from envdoctor.solve.targets import installed_of, target_of


def goal_of(args: argparse.Namespace, least_change: bool = False) -> Goal:
    """Return what the command asks for; raises InputError or Unavailable."""
    matrix = load_matrix()
    requests = [*parse_requests(args.requests), *(r for f in args.files for r in read_requests(Path(f)))]
    facts = _facts(args, matrix, needed=not requests or least_change)
    target = declared_target(args, matrix, facts)
    installed = installed_of(facts) if facts else {}
    if not requests:
        if not installed:
            raise InputError(
                "nothing to pin: no requirement was given, and nothing is installed in that environment"
            )
        if not least_change:
            requests = [Request(name, (), "", "installed") for name in sorted(installed)]
    snapshot = load_snapshot(matrix.folder)
    if not args.requests and not args.files:
        requests = [r for r in requests if (p := snapshot.package(r.name)) is not None and p.crawled]
    options = options_of(requests, args.exclude_newer, args.allow_source)
    context = Context(snapshot, matrix, target, options, installed)
    return Goal(context, tuple(requests), least_change)


def options_of(requests: Sequence[Request], exclude_newer: str | None, allow_source: bool) -> Options:
    """Return the options that requests and flags imply."""
    return Options(
        cutoff=parse_day(exclude_newer) if exclude_newer else None,
        allow_source=allow_source,
        prereleases=frozenset(r.name for r in requests if r.names_prerelease),
        exact=frozenset((r.name, r.exact.partition("+")[0]) for r in requests if r.exact),
    )


def _facts(args: argparse.Namespace, matrix: Matrix, needed: bool) -> Facts | None:
    declared = args.gpu or args.driver or args.platform or args.python_version
    if args.target is None and declared and not needed:
        return None
    from envdoctor.diagnosis import read_facts

    return read_facts([args.target] if args.target else [], None, matrix)


def declared_target(args: argparse.Namespace, matrix: Matrix, facts: Facts | None) -> Target:
    """Return the target: what facts tell, with what the options declare in its place; raises InputError."""
    told = target_of(facts, matrix) if facts else Target(this_python(), this_platform())
    cards = tuple(card_named(name, matrix) for name in args.gpu) or told.cards
    try:
        driver = DriverVersion.parse(args.driver) if args.driver else told.driver
    except ValueError:
        raise InputError(f"--driver {args.driver}: expected something like 580.95.05") from None
    return Target(
        parse_python(args.python_version) if args.python_version else told.python,
        parse_platform(args.platform) if args.platform else told.platform,
        cards,
        driver,
    )


def card_named(name: str, matrix: Matrix) -> Card:
    """Return the card of a name or compute capability; raises InputError for an unknown one."""
    try:
        capability = ComputeCapability.parse(name)
        return Card(capability.sm, capability)
    except ValueError:
        pass
    from envdoctor.matrix.gpus import find_gpu

    known = find_gpu(matrix, name)
    if known is None:
        raise InputError(f"--gpu {name}: not a card the matrix knows; give its capability, such as sm_90")
    return Card(name, known.compute_capability)


def names(requests: Iterable[Request]) -> list[str]:
    """Return the requests as text."""
    return [str(request) for request in requests]
