"""What code leans on and the installed releases lack, as findings: each name once, with its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envdoctor.commands import install_commands
from envdoctor.facts import Facts
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.target.stack import stack_of
from envdoctor.upgrading.upgrading import (
    Found,
    Judged,
    installed_moves,
    judge_paths,
    moves_of_its_time,
)
from envdoctor.upgrading.uses import Kind

SHOWN = 6
"""Places of one name that are listed."""


def code_findings(facts: Facts, matrix: Matrix, paths: Sequence[str]) -> Iterator[Finding]:
    """Yield what breaks in the files under `paths` with what is installed; raises InputError."""
    versions = stack_of(facts).versions
    lately = dict(moves_of_its_time(load_snapshot(matrix.folder), versions))
    judged = judge_paths(matrix, installed_moves(versions), paths, lately=lately)
    names: dict[str, list[Found]] = {}
    for found in judged.failing:
        if found.told.use.kind is Kind.REQUIREMENT:
            continue  # what is installed against a file: the reader of requirements says it
        names.setdefault(found.told.name, []).append(found)
    for places in names.values():
        yield _finding(places, versions, matrix)
    if judged.unfollowed or judged.unread or not versions:
        yield _note(judged, bool(versions))


def _finding(places: Sequence[Found], versions: Mapping[str, str], matrix: Matrix) -> Finding:
    told = places[0].told
    library = told.library or distribution_of(matrix, told.use.path)
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    pins = {library: f"<{told.since}"}
    instead = (Remedy(f"Write {told.replacement}."),) if told.replacement else ()
    return Finding(
        id="CODE-BREAKS",
        severity=Severity.ERROR,
        summary=f"{told.name} is gone since {library} {told.since}, and {versions[library]} is installed:"
        f" {place_of(places[0])}{more}",
        cause="The code was written for an older release; the installed one has no such thing.",
        evidence=tuple(Evidence("code", one.told.name, place_of(one)) for one in places[:SHOWN]),
        remedies=(*instead, Remedy("Keep the code and use an older release.", install_commands(pins), pins)),
        certainty=told.certainty,
        sources=(f"wheel:{library}",),
    )


def place_of(found: Found) -> str:
    """Return where a break stands, as an editor opens it."""
    cell = f" cell {found.cell}" if found.cell else ""
    return f"{found.file}{cell}:{found.told.use.place.line}"


def _note(judged: Judged, known: bool) -> Finding:
    parts = (
        [f"{judged.unfollowed} uses that only a run would tell were not followed"]
        if judged.unfollowed
        else []
    )
    parts += [f"not read: {', '.join(judged.unread[:SHOWN])}"] if judged.unread else []
    parts += [] if known else ["no installed version is known, so nothing was judged"]
    return Finding(
        id="CODE-UNFOLLOWED",
        severity=Severity.NOTE,
        summary=f"of the code: {'; '.join(parts)}",
        cause="Code is judged by its syntax alone; computed names and options from elsewhere stay open.",
        certainty=Certainty.CERTAIN,
    )
