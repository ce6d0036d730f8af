"""Parts that a program can do without: how to go round one that fails where nothing accounts for it."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.generations import asking_package
from envdoctor.rules.messages import distinct
from envdoctor.rules.view import View
from envdoctor.values import replace

ID = "PART-FAILS"
FRAMES = 8
"""Innermost frames that are looked at: further out nearly every part of a program is passed through."""
_MOST = 2


def detour_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return the part in which an error was raised, with how to do without it; None where no row knows it."""
    rows = _rows(view, error) if error.kind != "said" else []
    if not rows:
        return None
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{rows[0].part} fails here: {error.text[:240]}",
        cause="Whether its release, the card or what it was given is at fault is not on record here: another"
        " version of it, or one that does not fit the rest, fails like that. It can be done without.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=_ways(rows),
        certainty=Certainty.UNCERTAIN,
        rows=tuple(row.id for row in rows),
        sources=(rows[0].source,),
        explains=error.symptoms,
        prior=0.25,
        fallback=True,
    )


def with_detour(view: View, finding: Finding, error: ErrorSeen) -> Finding:
    """Return an uncertain finding about an error with how to do without the part that raised it."""
    rows = _rows(view, error)
    return replace(finding, remedies=distinct((*finding.remedies, *_ways(rows)))) if rows else finding


def _ways(rows: Sequence[tables.DetourRow]) -> tuple[Remedy, ...]:
    return distinct(Remedy(way) for row in rows for way in row.ways)


def _rows(view: View, error: ErrorSeen) -> list[tables.DetourRow]:
    frames = error.frames[-FRAMES:]
    paths = [frame.file.replace("\\", "/") for frame in frames]
    functions = {frame.function.rpartition(".")[2] for frame in frames}
    text, packages = error.text.lower(), {asking_package(view, frame) for frame in error.frames}
    found = [
        row
        for row in view.matrix.rows(tables.DetourRow)
        if any(part in path for part in row.paths for path in paths)
        or not functions.isdisjoint(row.functions)
        or any(needle in text for needle in row.needles)
    ]
    return [row for row in found if _is_of(view, row, packages)][:_MOST]


def _is_of(view: View, row: tables.DetourRow, packages: set[str]) -> bool:
    """True where one of the programs that a row is for runs; with two servers told the traceback decides."""
    if not row.programs or not packages.isdisjoint(row.programs):
        return True
    servers = {"vllm", "sglang"}
    return packages.isdisjoint(servers) and any(view.installed(program) for program in row.programs)
