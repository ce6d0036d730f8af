"""How far the run came that a text shows: what lies behind it is not what ended it.

A finding that versions, cards or settings alone tell of says what must fail. A text that shows it working, or
shows the run ended by an error that this defect does not give, is evidence against: it is weighed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from envdoctor import lazy_re as re
from envdoctor.facts import (
    ASKED,
    CONTRADICTED,
    IN_WORDS,
    MOOD,
    REPORTED,
    TOLD_CAUSE,
    TOLD_WAY,
    ErrorSeen,
    Frame,
)
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import tables
from envdoctor.patterns import glob_matches
from envdoctor.rules.base import UNEXPLAINED
from envdoctor.rules.generations import asking_package
from envdoctor.rules.passed import line_of, went_on
from envdoctor.rules.unexplained import is_in_sentence, is_weak, met_in
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

_STAGES = ("import", "device", "model", "kernel")
_LAST = len(_STAGES) - 1
_MODULE = "<module>"
_QUOTE = 100
_EVERYWHERE = frozenset({"torch", "numpy"})
"""Packages that run in all that others do: that they are named or ran tells nothing of a pair."""
_PYTHON = re.compile(r"[/\\](?:lib[/\\])?[Pp]ython3?\.?(\d{1,2})[/\\]")
"""The folder of a Python 3 in the path of a frame, with its minor version."""
_WARNED = re.compile(r"\b[A-Z]\w{0,40}Warning: |^(?:\([^()]{1,40}\) ?)?WARNING\b")


@dataclass(frozen=True, slots=True)
class _Reached:
    """A stage that lay behind the run, of which package, and what shows it."""

    stage: int
    package: str | None
    shown: str
    line: int = 0
    ends: bool = False
    """True where the run came to its end."""


def as_shown(view: View, end: ErrorSeen | None, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those that the run outlived or did not end by with what that leaves of them."""
    course = _Course(view, end)
    answered = course.answered(findings)
    return [course.judged(finding, answered) for finding in findings]


class _Course:
    """What a text tells of one run: the error that it ended in, and the stages that lay behind it."""

    def __init__(self, view: View, end: ErrorSeen | None) -> None:
        self._view = view
        self.end = None if end is None or is_weak(view, end) else end
        self.cut = end if self.end is None else None
        self.apart = _is_apart(view, end)
        self.contradicted = {
            note.partition(CONTRADICTED)[0] for note in view.facts.notes if CONTRADICTED in note
        }

    @cached_property
    def reached(self) -> tuple[_Reached, ...]:
        """The stages that lay behind the run, by its lines, its tracebacks and what torch said."""
        return (*self._told(), *self._lines, *self._by_functions())

    def _told(self) -> Iterator[_Reached]:
        if self._view.torch_build.get("available") is True:
            yield _Reached(_STAGES.index("device"), None, "torch told that CUDA is available")

    @cached_property
    def _lines(self) -> tuple[_Reached, ...]:
        return tuple(
            _Reached(
                *(_STAGES.index(row.stage), row.package, f"{one.text[:_QUOTE]} ({one.source})"),
                line=line_of(one.source),
                ends=row.ends,
            )
            for row in self._view.matrix.rows(tables.ReachedRow)
            for one in self._view.facts.symptoms
            if one.id in row.symptoms
        )

    def _by_functions(self) -> Iterator[_Reached]:
        rows = self._view.matrix.rows(tables.ReachedRow)
        for error in self._view.facts.errors:
            for frame in error.frames:
                row = next((row for row in rows if frame.function in row.functions), None)
                if row and row.package in (None, asking_package(self._view, frame)):
                    shown = f"{frame.function} ran ({error.source})"
                    yield _Reached(_STAGES.index(row.stage), row.package, shown)

    @cached_property
    def imported(self) -> dict[str, str]:
        """What shows each package to have been imported: a function of it ran, or it printed a line."""
        found = {one.package: one.shown for one in self.reached if one.package}
        for error in self._view.facts.errors:
            for name, frame in _ran(self._view, error.frames):
                found.setdefault(name, f"{frame.function} of {name} ran ({error.source})")
        return found

    def answered(self, findings: Iterable[Finding]) -> frozenset[str]:
        """Return the ids of the findings that account for the error which the run ended in."""
        if self.end is None:
            return frozenset()
        met = met_in(self._view, self.end)
        sure = (f for f in findings if f.certainty is not Certainty.UNCERTAIN)
        return frozenset(f.id for f in sure if not met.isdisjoint(f.explains))

    def judged(self, finding: Finding, answered: frozenset[str]) -> Finding:
        """Return a finding as the run leaves it."""
        if finding.severity is not Severity.ERROR:
            return replace(finding, severity=Severity.ERROR) if self._is_complained_of(finding) else finding
        if finding.id == UNEXPLAINED:
            end = self.end or self.cut
            well = end is not None and self._is_log() and 0 < end.line < self._ended
            return replace(finding, severity=Severity.WARNING) if well else finding
        if finding.explains and self._is_in_words(finding):
            told = f"{finding.cause} No such line is shown: the text tells it in words."
            severity = finding.severity if self._is_reported() else Severity.WARNING
            return replace(finding, severity=severity, certainty=_at_most_likely(finding), cause=told)
        if finding.explains and (spoken := self._spoken_of(finding)):
            return spoken
        if self._is_quoted(finding):
            told = f"{finding.cause} The text quotes the line in a sentence, and shows a run that works."
            return replace(finding, severity=Severity.WARNING, certainty=Certainty.UNCERTAIN, cause=told)
        if finding.explains and self._went_on(finding):
            told = f"{finding.cause} The text shows that the run went on without it."
            return replace(finding, severity=Severity.NOTE, certainty=Certainty.UNCERTAIN, cause=told)
        if finding.explains and self._ended_well_after(finding):
            told = f"{finding.cause} The text shows that the run came to its end after that."
            return replace(finding, severity=Severity.WARNING, certainty=_at_most_likely(finding), cause=told)
        if finding.id in answered:
            return finding
        if self.apart and self._is_of_listing(finding):
            told = f"{finding.cause} The Python that ran is another than the one whose packages are listed."
            return replace(finding, certainty=_at_most_likely(finding), cause=told, beside=True)
        if finding.explains and self._is_outlived(finding):
            told = f"{finding.cause} The text shows that the run went on."
            return replace(finding, severity=self._after_all, certainty=Certainty.UNCERTAIN, cause=told)
        if finding.explains:
            return self._of_another_error(finding)
        if any(glob_matches(one, pattern) for one in answered for pattern in finding.follows):
            return finding
        row = self._row(finding)
        if self.end and self._gives(row, finding, self.end):
            return finding
        if row and (shown := self._outlived(row, finding)):
            told = f"{finding.cause} But the text shows that the run came further: {shown}."
            sure = finding.certainty if row.declared else _at_most_likely(finding)
            return replace(finding, severity=Severity.WARNING, certainty=sure, cause=told)
        if self.end and (answered or (row and row.declared and not self._names(finding, self.end))):
            return _beside(finding, row)
        if self.end or self._is_elsewhere(finding) or self.contradicted & _packages(self._view, finding):
            return replace(finding, certainty=_at_most_likely(finding))
        return finding

    @property
    def _after_all(self) -> Severity:
        """An error where somebody tells of one, whichever of several runs is shown below; else a warning."""
        told = any(note.startswith((TOLD_CAUSE, TOLD_WAY)) for note in self._view.facts.notes)
        return Severity.ERROR if told else Severity.WARNING

    def _is_elsewhere(self, finding: Finding) -> bool:
        """True where the text shows trouble by mere words, or by a traceback cut off in another package.

        What a card cannot do holds whatever the words are about.
        """
        if self.cut is None or not (self.cut.frames or self.cut.kind == "said"):
            return False
        if self.cut.kind == "said" and any(one.fact == "gpu" for one in finding.evidence):
            return False
        last = asking_package(self._view, self.cut.frames[-1]) if self.cut.frames else ""
        return last not in _packages(self._view, finding)

    def _went_on(self, finding: Finding) -> bool:
        """True for lines, and tracebacks that only warn, above one that a run prints where it goes on."""
        met = set(finding.explains)
        noted = [one for one in self._view.facts.symptoms if one.id in met]
        errors = [one for one in self._view.facts.errors if not met.isdisjoint(one.symptoms)]
        if any(error.frames for error in errors) and not all(_WARNED.search(one.text) for one in noted):
            return False
        last = max((*(line_of(one.source) for one in noted), *(error.line for error in errors)), default=0)
        return went_on(self._view, finding.id, last)

    def _is_outlived(self, finding: Finding) -> bool:
        """True for lines, no tracebacks and all but the last of the text, below which kernels ran."""
        met = set(finding.explains)
        errors = [one for one in self._view.facts.errors if not met.isdisjoint(one.symptoms)]
        if any(error.frames or error.kind not in {"line", "logged"} for error in errors):
            return False
        noted = (one for one in self._view.facts.symptoms if one.id in met)
        places = [*(line_of(one.source) for one in noted), *(error.line for error in errors)]
        after = max((one.line for one in self._lines if one.stage == _LAST), default=0)
        ended = self.end is not None and not met.isdisjoint(met_in(self._view, self.end)) and not errors
        return bool(places) and not ended and 0 < max(places) < after

    def _ended_well_after(self, finding: Finding) -> bool:
        """True in a log for errors, with tracebacks too, all above the line by which a run tells its results.

        Who writes of an error tells of it, whichever of several runs is shown below.
        """
        met = set(finding.explains)
        places = [error.line for error in self._view.facts.errors if not met.isdisjoint(error.symptoms)]
        return self._is_log() and bool(places) and max(places) < self._ended

    def _is_log(self) -> bool:
        """True for a text in which nobody writes of an error."""
        return REPORTED not in self._view.facts.notes and self._after_all is not Severity.ERROR

    @property
    def _ended(self) -> int:
        """The last line by which a run tells its results; 0 for none."""
        return max((one.line for one in self._lines if one.ends), default=0)

    def _of_another_error(self, finding: Finding) -> Finding:
        """What accounts for another error than the one that the title names is beside the question.

        So is what only a warning tells that leads to other errors than the one which ended the run.
        """
        if self.end is None or self._is_asked():
            return replace(finding, certainty=_at_most_likely(finding)) if self._is_asked() else finding
        row = self._row(finding)
        met = [one for one in self._view.facts.symptoms if one.id in finding.explains]
        raised = (error for error in self._view.facts.errors if error.kind == "exception")
        in_errors = {symptom for error in raised for symptom in error.symptoms}
        warned = all(one.id not in in_errors and _WARNED.search(one.text) for one in met)
        other = bool(warned and row and not self._gives(row, finding, self.end))
        return _beside(finding) if other or self._is_titled(self.end) else finding

    def _is_asked(self) -> bool:
        """True for a question that quotes an error in a sentence."""
        facts = self._view.facts
        return ASKED in facts.notes and all(error.kind == "said" for error in facts.errors)

    def _is_quoted(self, finding: Finding) -> bool:
        """True for a line that stands within sentences alone, in a text that shows kernels to have run."""
        ran = any(one.stage == _LAST for one in self._lines)
        errors = [
            one for one in self._view.facts.errors if not set(one.symptoms).isdisjoint(finding.explains)
        ]
        return ran and bool(errors) and all(is_in_sentence(one) for one in errors)

    def _is_in_words(self, finding: Finding) -> bool:
        """True where a person tells all lines that a finding explains, and none is shown."""
        met = [one for one in self._view.facts.symptoms if one.id in finding.explains]
        return bool(met) and all(IN_WORDS in one.captured for one in met)

    def _is_complained_of(self, finding: Finding) -> bool:
        """True for a warning about the very trouble that a person reports in words, beside no error line."""
        met = [one for one in self._view.facts.symptoms if one.id in finding.explains]
        told = all(IN_WORDS in one.captured or one.captured.get(MOOD) == "told" for one in met)
        words = bool(met) and told and all(error.kind == "said" for error in self._view.facts.errors)
        return finding.severity is Severity.WARNING and words and self._is_reported()

    def _is_reported(self) -> bool:
        """True where an error is shown, or a person tells that something failed and asks no mere question."""
        notes = self._view.facts.notes
        shown = any(error.kind != "said" for error in self._view.facts.errors)
        return ASKED not in notes and (shown or REPORTED in notes)

    def _is_of_listing(self, finding: Finding) -> bool:
        """True for what packages or their own warnings tell, none of them in the error that ended the run."""
        met = met_in(self._view, self.end) if self.end else set()
        return met.isdisjoint(finding.explains) and bool(finding.explains or _packages(self._view, finding))

    def _spoken_of(self, finding: Finding) -> Finding | None:
        """Return a finding as sure as a sentence leaves it; None where a program printed one of its lines."""
        moods = {one.captured.get(MOOD) for one in self._view.facts.symptoms if one.id in finding.explains}
        if not moods or None in moods:
            return None
        if moods == {"supposed"}:
            told = f"{finding.cause} The text speaks of it as of what may come, is over or is passed over."
            return replace(finding, severity=Severity.WARNING, certainty=Certainty.UNCERTAIN, cause=told)
        if finding.certainty is not Certainty.CERTAIN:
            return None
        return replace(finding, certainty=Certainty.LIKELY)

    def _is_titled(self, end: ErrorSeen) -> bool:
        """True where the title of the text quotes the error, and a traceback shows it."""
        titles = (one for one in self._view.facts.errors if one.line == 1 and one.beside.startswith("#"))
        return bool(end.frames) and any(one.text and end.text.startswith(one.text) for one in titles)

    def _row(self, finding: Finding) -> tables.ShownRow | None:
        rows = self._view.matrix.rows(tables.ShownRow)
        return next((r for r in rows if any(glob_matches(finding.id, one) for one in r.findings)), None)

    def _gives(self, row: tables.ShownRow | None, finding: Finding, end: ErrorSeen) -> bool:
        """True where the error is one that the defect leads to; of one without a row, where it is named."""
        told = f"{end.exception} {end.text}".lower()
        known = row if row and row.errors else None
        if known and not any(word in told for word in known.errors):
            return False
        return bool(known and not known.named) or self._names(finding, end)

    def _names(self, finding: Finding, end: ErrorSeen) -> bool:
        """True where the error, or its traceback, names a package that the finding is about."""
        told = f"{end.exception} {end.text}".lower().replace("_", "-")
        inside = {asking_package(self._view, frame) for frame in end.frames}
        about = _packages(self._view, finding)
        about = about - _EVERYWHERE or about
        return any(name in inside or name in told for name in about)

    def _outlived(self, row: tables.ShownRow, finding: Finding) -> str:
        """Return what shows that the run had the defect behind it; empty where nothing does."""
        packages = _packages(self._view, finding)
        stage = _STAGES.index(row.shows)
        if stage == 0:
            asking = {finding.evidence[0].fact} & packages if row.asks else packages - _EVERYWHERE
            shown = [self.imported.get(name, "") for name in sorted(asking)]
            return shown[0] if shown and all(shown) else ""
        engines = packages & {row.package for row in self._view.matrix.rows(tables.ReachedRow) if row.package}
        further = (
            one for one in self.reached if one.stage >= stage and (not engines or one.package in engines)
        )
        return next((one.shown for one in further), "")


def _is_apart(view: View, end: ErrorSeen | None) -> bool:
    """True where the frames of an error are of another Python than the one whose packages are listed."""
    listed = (view.python.get() or "").split(".")[1:2]
    ran = {match[1] for frame in (end.frames if end else ()) if (match := _PYTHON.search(frame.file))}
    return bool(listed and ran) and listed[0] not in ran


def _ran(view: View, frames: Sequence[Frame]) -> Iterator[tuple[str, Frame]]:
    """Yield the packages of which a function ran, and which were not being imported then."""
    loading: set[str] = set()
    for frame in frames:
        name = asking_package(view, frame)
        if name and frame.function == _MODULE:
            loading.add(name)
        elif name and frame.function and name not in loading:
            yield name, frame


def _packages(view: View, finding: Finding) -> set[str]:
    """Return the packages that a finding is about."""
    return {one.fact for one in finding.evidence if view.facts.distribution(one.fact) is not None}


def _beside(finding: Finding, row: tables.ShownRow | None = None) -> Finding:
    """Return what did not end the run: less sure, or, where it is declared, as sure and less grave."""
    cause = f"{finding.cause} The run that is shown ended by another error."
    told = replace(finding, cause=cause, beside=True)
    if row and row.declared:
        return replace(told, severity=Severity.WARNING)
    return replace(told, certainty=_at_most_likely(finding))


def _at_most_likely(finding: Finding) -> Certainty:
    return Certainty.LIKELY if finding.certainty is Certainty.CERTAIN else finding.certainty
