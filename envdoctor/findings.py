"""What judging yields: findings with evidence and remedies, and the state of each check."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any

from envdoctor.facts import Facts, to_json
from envdoctor.facts.model import EMPTY
from envdoctor.values import NamedTuple, Shown, dataclass

SCHEMA = "envdoctor.diagnosis/1"


class Severity(str, Enum):
    """The weight of a finding: will not run, runs but wrong or slow, worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Return its place among the severities: the gravest is 0."""
        return _RANKS[self]


_RANKS = {severity: place for place, severity in enumerate(Severity)}


class Certainty(str, Enum):
    """How sure a finding is: the facts prove it, make it probable, or only a symptom hints at it."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNCERTAIN = "uncertain"


UNREAD = "UNREAD"
"""The check that not all of a machine or text could be read."""


class Outcome(str, Enum):
    """The state of a check; never mixed with the weight of a finding."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen and where, so that a reader can disagree."""

    fact: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way to mend it: prose, runnable lines, and the specifiers that must hold afterwards."""

    text: str
    commands: tuple[str, ...] = ()
    pins: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, why, and what mends it."""

    id: str
    severity: Severity
    summary: str
    cause: str
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    certainty: Certainty = Certainty.CERTAIN
    consequence_of: str | None = None
    rows: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    """The symptoms that were seen and that this cause accounts for (not part of the JSON)."""
    prior: float = 0.5
    """How often this is the cause when nothing else decides (not part of the JSON)."""
    fallback: bool = False
    """True for a general answer, dropped where another finding accounts for the symptom (not in the JSON)."""
    follows: tuple[str, ...] = ()
    """Patterns of findings that this one is a consequence of, when they stand too (not part of the JSON)."""

    beside: bool = False
    """True where the run that is shown ended by something else (not part of the JSON)."""

    @property
    def is_last_resort(self) -> bool:
        """True for a general answer for which nothing but a line speaks."""
        return self.certainty is Certainty.UNCERTAIN and self.fallback


class CheckResult(NamedTuple):
    """The outcome of one check that was selected."""

    rule: str
    outcome: Outcome
    reason: str | None = None
    duration_ms: float = 0.0


HERE = "this machine"


@dataclass(frozen=True, slots=True)
class Examined:
    """What was looked at, beside the facts: their source in words, and the files as they were named."""

    source: str = "not told"
    files: tuple[str, ...] = ()
    own: bool = False
    """True when the examined interpreter is envdoctor's own."""

    @property
    def here(self) -> bool:
        """True when it was this machine, and no text, recording or image."""
        return self.source == HERE


@dataclass(frozen=True, slots=True)
class Move:
    """A distribution that a plan changes. `old` None: it comes in; `new` None: it goes; equal: once more.

    `new` is a version, or a specifier where the releases are not known and the installer chooses.
    """

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class SettingMove:
    """A setting that a plan changes; `file` None: on a command line or in code; `old` None: not told."""

    file: str | None
    key: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class Download:
    """What a plan's packages of known size weigh to download, at most, in bytes: a cache may hold some.

    `size` None: nothing of it is known. `unknown` tells why by package; not `whole` where others may come
    along, because what is installed is not all told.
    """

    size: int | None
    unknown: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    whole: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it in the terms of `envdoctor.diagnosis/1`."""
        complete = self.whole and not self.unknown
        return {"bytes": self.size, "complete": complete, "unknown": dict(self.unknown)}


@dataclass(frozen=True, slots=True)
class Plan:
    """One set of changes for all findings at once.

    `complete`: the changed facts were diagnosed again and have no error. `host` is what to ask of whoever
    looks after the machine, `by_hand` what to change in one's own code or files, `unsolved` the ids of
    findings that the plan does not mend, `notes` what of it is not certain.
    """

    complete: bool
    moves: tuple[Move, ...] = ()
    commands: tuple[str, ...] = ()
    settings: tuple[SettingMove, ...] = ()
    host: tuple[str, ...] = ()
    unsolved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    download: Download | None = None
    """None where nothing is to be downloaded."""

    def to_json(self) -> dict[str, Any]:
        """Return the plan in the terms of `envdoctor.diagnosis/1`."""
        return {
            "complete": self.complete,
            "changes": [{"name": m.name, "from": m.old, "to": m.new} for m in self.moves],
            "commands": list(self.commands),
            "settings": [{"file": s.file, "key": s.key, "from": s.old, "to": s.new} for s in self.settings],
            "host": list(self.host),
            "unsolved": list(self.unsolved),
            "notes": [*(f"by hand: {words}" for words in self.by_hand), *self.notes],
            "download": self.download.to_json() if self.download else None,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis(Shown):
    """Everything one run of `diagnose` knows: the single argument of every report."""

    facts: Facts
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    exit_code: int
    tool_version: str
    matrix_version: str
    matrix_date: str
    examined: Examined = Examined()
    plan: Plan | None = None
    """None where nothing was found."""

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis in the plain terms of `envdoctor.diagnosis/1`."""
        return {
            "schema": SCHEMA,
            "tool": {
                "version": self.tool_version,
                "matrix": {"version": self.matrix_version, "date": self.matrix_date},
            },
            "examined": self._examined_json(),
            "facts": to_json(self.facts),
            "checks": [_check_json(check) for check in self.checks],
            "findings": [finding_json(finding) for finding in self.findings],
            "plan": self.plan.to_json() if self.plan else None,
            "exit_code": self.exit_code,
        }

    def _examined_json(self) -> dict[str, Any]:
        from envdoctor.facts.backend import backend_of

        backend = backend_of(self.facts).get()
        return {
            "source": self.examined.source,
            "interpreter": self.facts.environment.executable.get(),
            "backend": backend.value if backend else "unknown",
            "own": self.examined.own,
        }


def _check_json(check: CheckResult) -> dict[str, Any]:
    return {
        "rule": check.rule,
        "outcome": check.outcome.value,
        "reason": check.reason,
        "duration_ms": round(check.duration_ms, 3),
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return one finding in the terms of `envdoctor.diagnosis/1`."""
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "summary": finding.summary,
        "cause": finding.cause,
        "evidence": [{"fact": e.fact, "value": e.value, "source": e.source} for e in finding.evidence],
        "remedies": [
            {"text": r.text, "commands": list(r.commands), "pins": dict(r.pins)} for r in finding.remedies
        ],
        "certainty": finding.certainty.value,
        "consequence_of": finding.consequence_of,
        "rows": list(finding.rows),
        "sources": list(finding.sources),
    }


_DOUBT = {Certainty.CERTAIN: 0, Certainty.LIKELY: 1, Certainty.UNCERTAIN: 2}


def order(findings: Sequence[Finding], decisive: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return findings worst first, each consequence directly under its root cause.

    Among those of one severity, what accounts for the decisive line (by the signatures met in it) stands
    before what accounts for another line, and that before what is merely true.
    """
    present = {finding.id for finding in findings}
    roots = [f for f in findings if f.consequence_of not in present]
    roots.sort(
        key=lambda f: (
            f.severity.rank,
            f.beside,
            _doubt(f),
            not f.explains,
            not any(symptom in decisive for symptom in f.explains),
            -f.prior,
        )
    )
    following: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.consequence_of is not None:
            following.setdefault(finding.consequence_of, []).append(finding)
    ordered: dict[int, Finding] = {}
    for root in (*roots, *findings):
        _place(root, following, ordered)
    return tuple(ordered.values())


def _place(root: Finding, following: Mapping[str, Sequence[Finding]], ordered: dict[int, Finding]) -> None:
    """Add a finding that is not there yet, and under it what follows from it, by the identity of objects."""
    ahead = [root]
    while ahead:
        finding = ahead.pop()
        if id(finding) not in ordered:
            ordered[id(finding)] = finding
            ahead.extend(reversed(following.get(finding.id, ())))


def _doubt(finding: Finding) -> float:
    """A likely cause of what was seen is nearer to the question than a certain one of nothing seen."""
    beside = finding.certainty is Certainty.CERTAIN and not finding.explains
    return _DOUBT[Certainty.LIKELY] + 0.5 if beside else _DOUBT[finding.certainty]


def exit_code(findings: Sequence[Finding], checks: Sequence[CheckResult], fail_on: Severity) -> int:
    """Return 1 for a finding at or above the threshold, else 3 for a crashed check, else 0."""
    if any(f.severity.rank <= fail_on.rank for f in findings):
        return 1
    return 3 if any(check.outcome is Outcome.CRASHED for check in checks) else 0
