"""From what is asked for, and a target, to a goal: requests, carried lines, options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.snapshot import Snapshot, load_snapshot
from envdoctor.solve.coverage import Coverage
from envdoctor.solve.goal import Goal, holding
from envdoctor.solve.nodes import TORCH, Context, Options
from envdoctor.solve.requests import Asked, Carried, Request, names_a_place, parse_day, parse_requests
from envdoctor.target.resolve import Target, check_index_serves
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for, in the command line's words: requirements, files of them, and what may be taken."""

    requests: Sequence[str] = ()
    files: Sequence[str] = ()
    least_change: bool = False
    exclude_newer: str | None = None
    allow_source: bool = False
    index_url: str | None = None
    offline: bool = False
    pins_there: bool = False
    """True where what files pin is what is there, and no request: what words ask for moves it."""

    @property
    def given(self) -> bool:
        """True when something is named; else it is what is installed."""
        return bool(self.requests or self.files)


def goal_of(wish: Wish, target: Target, matrix: Matrix) -> Goal:
    """Return what to solve for on a target; raises InputError for what cannot be read, else Unavailable."""
    check_index_serves(target, matrix)
    if wish.exclude_newer:
        parse_day(wish.exclude_newer)
    told = asked_by(wish.requests, wish.files, wish.pins_there)
    asked, over = told.under(target.marker_environment()), told.overrides
    installed = target.stack.versions
    until = wish.exclude_newer and wish.exclude_newer[:10]
    builds = matrix.rows(tables.CudaBuildRow) if wish.index_url is None else ()
    elsewhere = [row.package for row in builds if not row.on_index]
    looked_up = (wish.index_url, wish.offline, until, told.stated, elsewhere)
    coverage = Coverage(load_snapshot(matrix.folder), *looked_up)
    if told.stated:
        coverage.take_what_is_stated()
    given: frozenset[str] = frozenset()
    if wish.given:
        _check_not_empty(asked, wish.files)
        coverage.cover(request for request in asked.requests if request.exact or not request.line)
        asked = direct_references(asked, coverage.snapshot)
        given = frozenset(request.name for request in asked.requests if _is_given(request))
        rest = tuple(request for request in asked.requests if request.name not in given)
        asked = without_uncovered(replace(asked, requests=rest), coverage)
    elif not installed:
        raise InputError(
            "nothing to pin: no requirement was given, and nothing is installed in that environment"
        )
    elif not wish.least_change:
        requests = (Request(name, (), "", "installed") for name in sorted(installed))
        asked = Asked(tuple(r for r in requests if coverage.knows(r.name)))
    options = replace(options_of(asked, wish.exclude_newer, wish.allow_source), given=given, overrides=over)
    context = Context(coverage.snapshot, matrix, target, options, installed)
    if wish.least_change:
        options = holding(context, {request.name for request in asked.requests})
        if options.held:
            context = Context(coverage.snapshot, matrix, target, options, installed, context)
    beside = (asked.carried, asked.options, coverage)
    return Goal(context, asked.requests, wish.least_change, *beside, notes=asked.notes)


def asked_by(requests: Sequence[str], files: Sequence[str], pins_there: bool = False) -> Asked:
    """Return what arguments and files ask for; raises InputError.

    With `pins_there` of files what they neither pin nor words name.
    """
    words = Asked(tuple(parse_requests(requests)))
    asked = [words]
    if files:
        from envdoctor.solve.request_files import read_requests

        asked += (read_requests(Path(file)) for file in files)
    if pins_there:
        asked[1:] = (_unpinned(words, one) for one in asked[1:])
    return Asked.joined(asked)


def _unpinned(words: Asked, file: Asked) -> Asked:
    """Return what a file asks for, but for what it pins and what words name."""
    named = {request.name for request in words.requests}
    left = (request for request in file.requests if request.name not in named and not request.exact)
    return replace(file, requests=tuple(left))


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
    """Carry what a URL or path gives; it is solved for as the release that it names, where that is known.

    So is a release that the index does not have where a file names further places, one of which may have it.
    """
    requests, carried = [], []
    further = any(map(names_a_place, asked.options))
    for request in asked.requests:
        package, public = snapshot.package(request.name), (request.exact or "").partition("+")[0]
        known = package is not None and public in package.position
        if request.line:
            request = request if known else replace(request, spec="")
            carried.append(_reference(request, public if known else ""))
        elif further and public and package is not None and package.crawled and not known:
            why = "the index has no such release; a place that its file names may have it"
            carried.append(Carried(str(request), request.source, why))
            request = replace(request, line=str(request), spec="")
        requests.append(request)
    return replace(asked, requests=tuple(requests), carried=(*asked.carried, *carried))


def _is_given(request: Request) -> bool:
    """True for what a URL or path gives without naming a release: what it requires is not known."""
    return bool(request.line) and not request.spec


def _reference(request: Request, version: str) -> Carried:
    if version:
        why = f"a direct reference, judged as {request.name} {version}"
    else:
        why = "a direct reference: which release it is, and what it requires, is not known"
    return Carried(request.line, request.source, why, judged=bool(version))


def options_of(asked: Asked, exclude_newer: str | None = None, allow_source: bool = False) -> Options:
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
        built=frozenset((n, v.partition("+")[2]) for n, v in exact if n != TORCH and "+" in v),
        constraints=asked.constraints,
        asked=frozenset(
            word for r in asked.requests for word in (r.name, *(f"{r.name}[{extra}]" for extra in r.extras))
        ),
        any_prerelease=asked.prereleases,
    )
