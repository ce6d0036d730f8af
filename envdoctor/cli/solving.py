"""From the command line of `pin` and `why-not` to a goal: the target, the request, what is installed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.facts import ComputeCapability, DriverVersion, Facts
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.snapshot import Snapshot, load_snapshot
from envdoctor.solve.coverage import Coverage
from envdoctor.solve.nodes import TORCH, Context, Options
from envdoctor.solve.request_files import read_requests
from envdoctor.solve.requests import Asked, Carried, Request, parse_day, parse_requests
from envdoctor.solve.solver import Goal
from envdoctor.solve.target import Card, Target, parse_platform, parse_python, this_platform, this_python
from envdoctor.solve.targets import installed_of, target_of


def goal_of(args: argparse.Namespace, least_change: bool = False) -> Goal:
    """Return what the command asks for; raises InputError or Unavailable."""
    matrix = load_matrix()
    written = asked_by(args.requests, args.files)
    given = bool(args.requests or args.files)
    facts = _facts(args, matrix, needed=not given or least_change)
    target = declared_target(args, matrix, facts)
    asked = written.under(target.marker_environment())
    installed = installed_of(facts) if facts else {}
    coverage = Coverage(load_snapshot(matrix.folder), args.index_url, args.offline)
    if given:
        _check_not_empty(asked, args.files)
        coverage.cover(asked.requests)
        asked = direct_references(without_uncovered(asked, coverage), coverage.snapshot)
    elif not installed:
        raise InputError(
            "nothing to pin: no requirement was given, and nothing is installed in that environment"
        )
    elif not least_change:
        requests = (Request(name, (), "", "installed") for name in sorted(installed))
        asked = Asked(tuple(r for r in requests if coverage.knows(r.name)))
    options = options_of(asked, args.exclude_newer, args.allow_source)
    context = Context(coverage.snapshot, matrix, target, options, installed)
    return Goal(context, asked.requests, least_change, asked.carried, asked.options, coverage)


def asked_by(requests: Sequence[str], files: Sequence[str]) -> Asked:
    """Return what arguments and files ask for; raises InputError."""
    return Asked.joined(
        (Asked(tuple(parse_requests(requests))), *(read_requests(Path(file)) for file in files))
    )


def _check_not_empty(asked: Asked, files: Sequence[str]) -> None:
    """Raise InputError when nothing is asked for: a selection that selects nothing is no answer."""
    if not asked.requests and not asked.carried:
        raise InputError(f"{', '.join(files) or 'the arguments'}: nothing is asked for")


def without_uncovered(asked: Asked, coverage: Coverage) -> Asked:
    """Return what can be solved for; requests for packages that the facts do not cover are carried."""
    unknown = [request for request in asked.requests if not coverage.knows(request.name)]
    carried = tuple(Carried(r.line or str(r), r.source, coverage.why(r.name)) for r in unknown)
    return replace(
        asked,
        requests=tuple(request for request in asked.requests if request not in unknown),
        carried=asked.carried + carried,
    )


def direct_references(asked: Asked, snapshot: Snapshot) -> Asked:
    """Carry what a URL or path gives; it is solved for as the release that it names, else as any release."""
    requests, carried = [], []
    for request in asked.requests:
        package = snapshot.package(request.name) if request.line else None
        if package is not None:
            public = (request.exact or "").partition("+")[0]
            known = public in package.position
            request = request if known else replace(request, spec="")
            carried.append(_reference(request, public if known else ""))
        requests.append(request)
    return replace(asked, requests=tuple(requests), carried=(*asked.carried, *carried))


def _reference(request: Request, version: str) -> Carried:
    if version:
        why = f"a direct reference, judged as {request.name} {version}"
    else:
        why = f"a direct reference, of which nothing is known; any {request.name} is assumed"
    return Carried(request.line, request.source, why, judged=bool(version))


def options_of(asked: Asked, exclude_newer: str | None, allow_source: bool) -> Options:
    """Return the options that what is asked for and flags imply."""
    told = (*asked.requests, *asked.constraints)
    exact = [(request.name, request.exact) for request in told if request.exact]
    return Options(
        cutoff=parse_day(exclude_newer) if exclude_newer else None,
        allow_source=allow_source,
        prereleases=frozenset(r.name for r in told if r.names_prerelease),
        exact=frozenset((name, version.partition("+")[0]) for name, version in exact),
        labels=frozenset(
            (v.partition("+")[0], v.partition("+")[2]) for n, v in exact if n == TORCH and "+" in v
        ),
        constraints=asked.constraints,
        any_prerelease=asked.prereleases,
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
