"""Tracebacks that are cut off before their message: what was done where they end, and what usually fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands
from envdoctor.facts import ErrorSeen, Frame
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.view import View

ID = "CUT-OFF"
_CALL = re.compile(r"([A-Za-z_][\w.]{0,80})\(")
_INSTALL = re.compile(r"\bpip install ((?:'[a-z][\w-]{0,60}[<>=!~][^'\s]{1,40}' ?){1,4})")
_NAMED = re.compile(r"'([a-z][\w-]{0,60})([<>=!~][^'\s]{1,40})'")
_NOTHING = frozenset({"timed out", "The read operation timed out", "The operation did not complete (read)"})
"""Messages that are the same whatever failed."""
FRAMES = 8
"""How many frames from the end are looked at."""


def place_finding(view: View, error: ErrorSeen, empty: bool) -> Finding | None:
    """Return what was done where a traceback without a message ends; None where no row knows the place.

    `empty`: the message only says that something else failed.
    """
    if not empty and error.kind != "cut" and not _is_torn(error.text.partition(":")[2].strip()):
        return None
    row = _row(view, error)
    if row is None:
        return None
    return _finding(
        row,
        error,
        f"the text ends before the error itself; it fell while {row.during}: {row.usual}",
        "The last lines of the traceback are missing, and with them the message; what usually fails at"
        " this place is no more than a guess.",
        (Remedy("Show the end of the log: the exception's own line says what it was."),),
    )


def beside_place(view: View, error: ErrorSeen) -> Finding | None:
    """Return what was done where an error with a message was raised; None where no row knows the place."""
    row = _row(view, error)
    if row is None:
        return None
    return _finding(
        row,
        error,
        f"it fell while {row.during}: {row.usual}",
        "That is what usually fails at this place; which of it, the message alone does not tell.",
    )


def _row(view: View, error: ErrorSeen) -> tables.PlaceRow | None:
    frames = (*_called(error.frames[-1:]), *reversed(error.frames[-FRAMES:]))
    return next((row for frame in frames for row in _rows(view, frame)), None)


def _finding(
    row: tables.PlaceRow, error: ErrorSeen, summary: str, cause: str, more: tuple[Remedy, ...] = ()
) -> Finding:
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=summary,
        cause=cause,
        evidence=(Evidence("error", error.text, error.source),),
        remedies=(*map(_as_told, row.remedies), *more),
        certainty=Certainty.UNCERTAIN,
        rows=(row.id,),
        sources=(row.source,),
        explains=error.symptoms,
        prior=0.3,
    )


def _as_told(words: str) -> Remedy:
    """Return a way with the releases that a `pip install` in its words names."""
    line = _INSTALL.search(words)
    pins = dict(_NAMED.findall(line[1])) if line else {}
    return Remedy(words, install_commands(pins), pins)


def _is_torn(message: str) -> bool:
    """True for a message that says nothing: it is empty, or breaks off within a word or a bracket."""
    bare = message.removeprefix("(").removeprefix("<")
    return not message or message in _NOTHING or (bare.isidentifier() and (bare != message or bare.islower()))


def _called(last: Sequence[Frame]) -> Iterator[Frame]:
    """Yield the frames that the last line that is left would have led to, by the names that it calls."""
    for frame in last:
        for name in _CALL.findall(frame.code):
            yield replace(frame, function=name.rpartition(".")[2])


def _rows(view: View, frame: Frame) -> Iterator[tables.PlaceRow]:
    path = frame.file.replace("\\", "/")
    function = frame.function.rpartition(".")[2]
    for row in view.matrix.rows(tables.PlaceRow):
        if function not in row.functions or (row.files and not path.endswith(row.files)):
            continue
        if not row.packages or any(f"/{name}/" in path for name in row.packages):
            yield row
