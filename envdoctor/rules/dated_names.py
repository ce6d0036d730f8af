"""Names of a library that an error shows without its missing one: since which releases the code is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands
from envdoctor.facts import ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.interface_ranges import joined, specifier_of
from envdoctor.matrix.interface_records import Record, Spans, libraries_with, load_record
from envdoctor.matrix.late_tables import holding
from envdoctor.rules.calendar import day_of, told_release
from envdoctor.rules.generations import YOUNG, asking_package
from envdoctor.rules.suspects import ID
from envdoctor.rules.view import View
from envdoctor.values import dataclass

_NAME = re.compile(r"\b[A-Za-z_]\w{9,60}\b")
_MARKED = re.compile(r"[a-z0-9_][A-Z]|[A-Za-z]_[A-Za-z]")
_SHOWN = re.compile(
    r"[`'\".(][A-Za-z]\w{9,60}\b|\b[A-Za-z]\w{9,60}(?:[`'\"(\[]|\.\w)|\b\w{1,40}_\w{1,40}\b|\b(?:[A-Z][a-z0-9]+){3,8}\b"
)
"""Words of a message that name something of a program: quoted, called, dotted, or longer than a product's
name (`FlashAttention` may be either)."""
_EXCEPTION = re.compile(r"(?:Error|Exception|Warning)$")
FRAMES = 3
"""Innermost frames whose quoted line is looked at."""


@dataclass(frozen=True, slots=True)
class _Dated:
    """A name that only some releases of a library have."""

    name: str
    record: Record
    spans: Spans


def dated_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what a name in an error tells of the releases that raise it; None where none tells."""
    dated = next(_dated(view, error), None) if error.kind != "said" else None
    if dated is None:
        return None
    library, name = dated.record.library, dated.name
    having = specifier_of(list(dated.record.versions), [list(span) for span in dated.spans])
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{name} is a name of {library} {having} ({told_release(view, library)} here):"
        f" {error.text[:240]}",
        cause=f"What fails has to do with {name}, which other releases of {library} do not have: they do not"
        " fail in this way. Whether it is a bug of these releases or something that they demand of others"
        " is not on record here.",
        evidence=(Evidence("error", error.text, error.source),),
        remedies=tuple(_ways(dated)),
        certainty=Certainty.UNCERTAIN,
        sources=(f"wheel:{library}",),
        explains=error.symptoms,
        prior=0.3,
    )


def _dated(view: View, error: ErrorSeen) -> Iterator[_Dated]:
    for name in _names(error):
        having = libraries_with(view.matrix.folder, name)
        found = [
            _of(view, error, name, one) for one in having if len(having) == 1 or _is_named(view, error, one)
        ]
        fitting = [one for one in found if one]
        if len(fitting) == 1:
            yield fitting[0]


def _names(error: ErrorSeen) -> Sequence[str]:
    """Return the words of an error and of its last lines of code that read like names of a program."""
    codes = (frame.code for frame in reversed(error.frames[-FRAMES:]))
    shown = (match[0] for match in _SHOWN.finditer(error.text[:600]))
    words = (word for text in (error.beside, *shown, *codes) for word in _NAME.findall(text[:600]))
    return list(dict.fromkeys(w for w in words if _MARKED.search(w) and not _EXCEPTION.search(w)))[:12]


def _of(view: View, error: ErrorSeen, name: str, library: str) -> _Dated | None:
    """Return a name with the releases that have it, where the installed one is or may be among them."""
    record = load_record(view.matrix.folder, library) if _may_be(view, error, name, library) else None
    if record is None:
        return None
    spans = joined(holding(record.names, name).values())
    version = view.version(library)
    if not spans or _is_old(view, record, spans) or (version and not record.has(spans, version)):
        return None
    return _Dated(name, record, spans)


def _is_old(view: View, record: Record, spans: Spans) -> bool:
    """True where every release of the last years has the name: it tells nothing."""
    first, newest = (day_of(view, record.library, record.versions[n]) for n in (spans[0][0], -1))
    still = spans[-1][1] == len(record.versions) - 1
    return still and (first is None or newest is None or newest - first > YOUNG)


def _may_be(view: View, error: ErrorSeen, name: str, library: str) -> bool:
    """True where the traceback runs through a library, or without one where it may be installed.

    A class of the same name may be any project's own: of it the report has to have the library.
    """
    if error.frames:
        return _is_run(view, error, library)
    return view.installed(library) is not False if "_" in name else _is_named(view, error, library)


def _is_named(view: View, error: ErrorSeen, library: str) -> bool:
    """True where the traceback or the report has the library: what several have is not told apart else."""
    told = view.facts.distribution(library) is not None or view.names(library)
    return told or _is_run(view, error, library)


def _is_run(view: View, error: ErrorSeen, library: str) -> bool:
    return any(asking_package(view, frame) == library for frame in error.frames)


def _ways(dated: _Dated) -> Iterator[Remedy]:
    library, versions = dated.record.library, list(dated.record.versions)
    first, last = dated.spans[0][0], dated.spans[-1][1]
    if first > 0:
        pins = {library: f"<{versions[first]}"}
        text = f"Go back to a {library} without it; the last is {versions[first - 1]}."
        yield Remedy(text, install_commands(pins), pins)
    if last < len(versions) - 1:
        pins = {library: f">{versions[last]}"}
        text = f"Take a newer {library}, which has it no longer."
        yield Remedy(text, install_commands(pins), pins)
    yield Remedy(f"Or upgrade what {library} needs (torch first) to what that release was made with.")
