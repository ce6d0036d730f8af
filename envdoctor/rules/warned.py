"""Warnings that a library's own code is known to give: they end nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from envdoctor.facts import ErrorSeen, WarningSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.atlas import WARNINGS, Origin, load_atlas
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.messages import asked_by, distinct
from envdoctor.rules.origins import told_place, told_releases
from envdoctor.rules.sayings import saying_of
from envdoctor.rules.view import View

WARNED, STRANGE = "WARNING-KNOWN", "WARNING-STRANGE"
SHOWN = 3
TOLD = 80
"""Letters by which a warning is known again."""


def check_warnings(view: View) -> Iterable[Finding]:
    """Tell of each warning which library gives it."""
    told: set[str] = set()
    for warning, origin in known_warnings(view):
        if origin.template not in told:
            told.add(origin.template)
            yield _finding(warning, origin)


def check_strange_warnings(view: View) -> Iterable[Finding]:
    """Tell of the warnings that no recorded release gives: what they mean is not known."""
    known = {warning.text for warning, _ in known_warnings(view)}
    judged = [symptom.text for symptom in view.facts.symptoms]
    strange = [
        one
        for one in view.facts.warnings
        if one.logged and one.text not in known and not _is_judged(one.text, judged)
    ]
    if not strange:
        raise Skip("no warning is told that no release on record gives")
    more = f" (and {len(strange) - 1} more)" if strange[1:] else ""
    yield Finding(
        id=STRANGE,
        severity=Severity.NOTE,
        summary=f"a warning that no release on record gives was not judged: {strange[0].text[:240]}{more}",
        cause="A program marked the line as a warning, and went on. Whether anything is wrong is not known"
        " here: no library's release that was read has these words.",
        evidence=tuple(Evidence("warning", one.text, one.source) for one in strange[:SHOWN]),
        remedies=_ways(view, strange[:SHOWN]),
        certainty=Certainty.UNCERTAIN,
        prior=0.1,
    )


def _is_judged(text: str, judged: Sequence[str]) -> bool:
    """True where a line that was recognised has the warning's beginning, or one of its sentences."""
    said = text.rpartition(": ")[2]
    parts = (text[:TOLD], *(part for part in said.split(". ") if len(part) >= TOLD // 2))
    return any(part in line for part in parts for line in judged)


def _ways(view: View, strange: Sequence[WarningSeen]) -> tuple[Remedy, ...]:
    """Return what follows from what warnings say of themselves: a package that is not there, a value."""
    told = (ErrorSeen(one.text, one.source, "logged") for one in strange)
    sayings = (saying_of(view, error) for error in told)
    return distinct(way for saying in sayings if saying for way in saying.remedies)


def known_warnings(view: View) -> Iterator[tuple[WarningSeen, Origin]]:
    """Yield the warnings that a library gives with its place in it."""
    for warning in view.facts.warnings:
        if found := _warned_by(view.matrix.folder, warning.text):
            yield warning, max(found, key=lambda origin: _is_named(view, warning, origin))


@lru_cache(maxsize=64)
def _warned_by(folder: Path, text: str) -> tuple[Origin, ...]:
    atlas = load_atlas(folder)
    return tuple(one for one in atlas.find(text) if one.kind in WARNINGS) if atlas else ()


def _is_named(view: View, warning: WarningSeen, origin: Origin) -> tuple[bool, bool, int]:
    """Rank the libraries that share words: the line's own file first, then what the facts tell of.

    Else it is whose others took over: what the stack is built on comes first.
    """
    here = warning.file.replace("\\", "/").endswith(origin.file)
    rank = STACK.index(origin.library) if origin.library in STACK else len(STACK)
    return here, view.installed(origin.library) is True, -rank


def _finding(warning: WarningSeen, origin: Origin) -> Finding:
    return Finding(
        id=WARNED,
        severity=Severity.NOTE,
        summary=f"a warning, no error: {origin.library} goes on after it: {warning.text[:240]}",
        cause=f"The line is one that {origin.library} warns with, in {told_releases(origin)}"
        f" ({told_place(origin)})" + (f", when {origin.guard}." if origin.guard else "."),
        evidence=(Evidence("warning", warning.text, warning.source),),
        remedies=asked_by(warning.text),
        certainty=Certainty.LIKELY,
        sources=(f"wheel:{origin.library}",),
        prior=0.3,
    )


RULES = (
    Rule(WARNED, "a warning is told from an error", check_warnings),
    Rule(STRANGE, "every warning is one that a release on record gives", check_strange_warnings),
)
