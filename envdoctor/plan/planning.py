"""The one plan of a diagnosis: all findings' wishes solved together, followed in thought, judged again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from envdoctor.facts import Distribution, Facts, Observed
from envdoctor.findings import Certainty, Finding, Move, Plan, SettingMove, Severity
from envdoctor.matrix import Matrix
from envdoctor.plan.advice import advised
from envdoctor.plan.following import apply_changes, identity
from envdoctor.plan.installing import install_lines
from envdoctor.plan.settings import setting_moves, with_settings
from envdoctor.plan.wishes import (
    UNEXPLAINED,
    Wish,
    considered,
    demands_of,
    once_more,
    open_pins,
    wishes_of,
)
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.view import View
from envdoctor.solve.mending import Demands
from envdoctor.solve.nodes import TORCH
from envdoctor.solve.remedy import NoRemedy, Remedy, mend
from envdoctor.values import dataclass

ROUNDS = 4
"""How often what a plan would lead to may bring wishes of its own."""
TRIES = 8
"""How many wishes are tried one by one where they cannot all be met."""


ANY = "installed"
"""The version of what is installed again where it is not told."""


@dataclass(frozen=True, slots=True)
class _Course:
    """A set of changes, what it leads to, and what is found there."""

    wishes: tuple[Wish, ...]
    remedy: Remedy | None
    open_: Mapping[str, str]
    gone: tuple[str, ...]
    again: tuple[str, ...]
    facts: Facts
    after: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.after if finding.severity is Severity.ERROR]


def plan_for(
    findings: Sequence[Finding],
    facts: Facts,
    matrix: Matrix,
    *,
    keep: Sequence[str] = (),
    newest: bool = False,
) -> Plan | None:
    """Return one set of changes for all findings; None where nothing was found.

    `keep` are packages that must stay as they are; with `newest` what moves goes as far as it can.
    """
    if not findings:
        return None
    return _Planner(tuple(findings), facts, matrix, tuple(keep), newest).plan()


class _Planner:
    def __init__(
        self, findings: tuple[Finding, ...], facts: Facts, matrix: Matrix, keep: tuple[str, ...], newest: bool
    ) -> None:
        self._findings, self._facts, self._matrix = findings, facts, matrix
        self._keep, self._newest = keep, newest
        self._view = View(facts, matrix)
        self._meant = considered(findings)
        self._wishes = wishes_of(self._meant)
        aside = [wish.ways[0] for wish in self._wishes if wish.ways and not wish.packages]
        told = {key: move for advice in aside for key, move in setting_moves(facts, advice.settings)}
        self._settings = tuple(told.values())
        self._shell = tuple(dict.fromkeys(line for advice in aside for line in advice.shell))

    def plan(self) -> Plan:
        return self._told(self._course([wish for wish in self._wishes if wish.packages]))

    def _course(self, packages: Sequence[Wish]) -> _Course:
        """Follow the wishes; what the result wishes is added, until nothing new is wished."""
        best = self._stay(self._settings, self._shell)
        wanted = list(packages)
        for _ in range(ROUNDS if wanted else 0):
            course = self._followed(wanted)
            if course is None:
                wanted, before = self._feasible(wanted), len(wanted)
                if not wanted or len(wanted) == before:
                    break
                continue
            known = {identity(wish.finding) for wish in wanted}
            fresh = [f for f in considered(course.after) if identity(f) not in known]
            more = [wish for wish in wishes_of(fresh) if wish.packages and self._grave(wish.finding)]
            if self._better(course, best):
                best = course
            if not more:
                break
            wanted = [*course.wishes, *more]
        return best

    def _grave(self, finding: Finding) -> bool:
        """True for an error that changes bring or leave, and for what a warning about packages says anew."""
        if finding.severity is Severity.ERROR:
            return True
        return identity(finding) not in {identity(f) for f in self._findings} and "PACKAGES" in finding.id

    def _better(self, course: _Course, best: _Course) -> bool:
        """True when a course brings no error of its own and leaves less than the best so far."""
        before = {identity(f) for f in self._findings}
        if any(identity(f) not in before for f in course.errors):
            return False
        return self._left(course) < self._left(best)

    def _left(self, course: _Course) -> tuple[int, int]:
        standing = {identity(finding) for finding in course.after}
        names = _moved(course)
        mended = [f for f in self._meant if identity(f) not in standing and _is_met(f, course.facts, names)]
        return len(course.errors), len(self._meant) - len(mended)

    def _stay(self, settings: tuple[SettingMove, ...], shell: Sequence[str]) -> _Course:
        if not settings and not shell:
            return _Course((), None, {}, (), (), self._facts, self._findings)
        facts = apply_changes(with_settings(self._facts, settings, shell), {})
        return _Course((), None, {}, (), (), facts, run_checks(facts, self._matrix, RULES)[1])

    def _followed(self, wishes: Sequence[Wish]) -> _Course | None:
        demands = self._demands(wishes)
        open_ = open_pins(wishes, self._matrix)
        again = once_more(wishes, self._view)
        remedy: Remedy | NoRemedy | None = None
        if demands.solvable:
            remedy = self._nearest(demands)
        if isinstance(remedy, NoRemedy):
            demands = self._demands(wishes, loose=True)
            remedy = self._nearest(demands)
        if isinstance(remedy, NoRemedy):
            return None
        versions = self._versions(remedy) if remedy else {}
        again = tuple(name for name in again if name not in versions)
        gone = tuple(sorted(demands.gone - versions.keys()))
        facts = with_settings(self._facts, self._settings, self._shell)
        facts = apply_changes(facts, versions, gone, again)
        facts = _with_open(facts, open_)
        _, after = run_checks(facts, self._matrix, RULES)
        return _Course(tuple(wishes), remedy, open_, gone, again, facts, after)

    def _demands(self, wishes: Sequence[Wish], loose: bool = False) -> Demands:
        return demands_of(wishes, self._view, self._matrix, self._keep, self._newest, loose)

    def _nearest(self, demands: Demands) -> Remedy | NoRemedy:
        """Solve; where only another build of an installed release is wished, that release first."""
        listed = self._facts.environment.distributions
        may_move = {name for ways in demands.either for way in ways for name in way}
        same = {
            name: f"=={(listed[name].version or '').partition('+')[0]}"
            for name, spec in demands.pins.items()
            if spec == "*" and name in listed and listed[name].version and name not in may_move
        }
        for kept in (same, {name: spec for name, spec in same.items() if name == TORCH}) if same else ():
            found = mend(self._facts, self._matrix, replace(demands, pins={**demands.pins, **kept}))
            if not isinstance(found, NoRemedy):
                return found
        return mend(self._facts, self._matrix, demands)

    def _versions(self, remedy: Remedy) -> dict[str, str]:
        """Return what comes in or moves; of a list that is not whole, what is not told may be there."""
        told = {pin.name for pin in remedy.pins}
        complete = self._view.complete
        return {n: v for n, v in remedy.versions.items() if complete or n in remedy.changes or n in told}

    def _feasible(self, wishes: Sequence[Wish]) -> list[Wish]:
        """Return as many wishes, worst first, as can be met together."""
        kept: list[Wish] = []
        for wish in wishes[:TRIES]:
            demands = self._demands([*kept, wish])
            if not demands.solvable or not isinstance(mend(self._facts, self._matrix, demands), NoRemedy):
                kept.append(wish)
        return kept

    def _told(self, course: _Course) -> Plan:
        """Put a course into words, with what it leaves."""
        aside = [w.finding for w in self._wishes if w.ways and not w.packages]
        doubts = tuple(dict.fromkeys(self._doubts(course, aside)))
        unsolved = list(self._unsolved(course, aside))
        graver = [f for f in unsolved if f.severity is Severity.ERROR or f.id == UNEXPLAINED]
        return Plan(
            complete=not course.errors and not graver and not doubts,
            moves=tuple(self._moves(course)),
            commands=(*self._commands(course), *self._shell),
            settings=self._settings,
            host=tuple(dict.fromkeys(filter(None, map(_host_words, unsolved)))),
            unsolved=tuple(dict.fromkeys(finding.id for finding in unsolved)),
            notes=doubts,
        )

    def _unsolved(self, course: _Course, aside: Sequence[Finding]) -> Iterator[Finding]:
        """Yield the errors and warnings that stand afterwards, or of which nothing was mended."""
        standing = {identity(finding) for finding in course.after}
        told, names = {identity(f) for f in aside}, _moved(course)
        met = {identity(f) for f in self._findings if _is_met(f, course.facts, names)} | told
        answered = {s for f in self._findings if identity(f) in met for s in f.explains}
        for finding in self._findings:
            if finding.severity is Severity.NOTE or identity(finding) in told:
                continue
            accounted = bool(finding.explains) and set(finding.explains) <= answered
            if identity(finding) in standing or not (identity(finding) in met or accounted):
                yield finding

    def _moves(self, course: _Course) -> Iterator[Move]:
        listed = self._facts.environment.distributions
        old = {name: one.version for name, one in listed.items()}
        yield from (Move(name, old.get(name), None) for name in course.gone)
        if course.remedy:
            versions = self._versions(course.remedy)
            for name in sorted(versions, key=lambda n: (n not in old, n)):
                yield Move(name, old.get(name), versions[name])
        yield from (Move(name, old.get(name), spec) for name, spec in course.open_.items())
        yield from (Move(name, old.get(name) or ANY, old.get(name) or ANY) for name in course.again)

    def _commands(self, course: _Course) -> tuple[str, ...]:
        pins = course.remedy.pins if course.remedy else ()
        environment = self._facts.environment
        options = {o for w in course.wishes for way in w.ways[:1] for o in way.options}
        return install_lines(environment, pins, course.open_, course.gone, course.again, sorted(options))

    def _doubts(self, course: _Course, aside: Sequence[Finding]) -> Iterator[str]:
        for name in course.open_:
            yield f"the releases of {name} are not known here: the installer chooses one"
        if course.remedy:
            yield from course.remedy.doubts
            if not isinstance(self._facts.environment.python, Observed):
                yield "the Python is not told: whether these releases install on it is not known"
        standing = {identity(finding) for finding in course.after}
        for finding in aside:
            seen = finding.explains or identity(finding) in standing
            if seen and finding.severity is Severity.ERROR:
                yield f"{finding.id}: only the next run shows whether the setting mends it"
        for finding in self._meant:
            if finding.certainty is Certainty.UNCERTAIN and finding.severity is Severity.ERROR:
                yield f"{finding.id} is a guess"


def _moved(course: _Course) -> set[str]:
    changed = set(course.remedy.versions) if course.remedy else set()
    return {*changed, *course.open_, *course.gone, *course.again}


def _is_met(finding: Finding, facts: Facts, moved: Set[str]) -> bool:
    """True when what was found is a matter of the facts alone, or something changed as a remedy says."""
    if not finding.explains:
        return True
    return any(
        not moved.isdisjoint((*way.pins, *way.gone, *way.again))
        and all(_holds(facts, n, s) for n, s in way.pins.items())
        for way in advised(finding)
    )


def _holds(facts: Facts, name: str, specifier: str) -> bool:
    one = facts.distribution(name)
    if one is None or specifier == "*":
        return one is not None
    if one.version is None:
        return one.specifier == specifier
    try:
        return SpecifierSet(specifier).contains(one.version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def _with_open(facts: Facts, pins: Mapping[str, str]) -> Facts:
    """Return the facts with packages of which only the specifier is known."""
    if not pins:
        return facts
    known = dict(facts.environment.distributions)
    known |= {n: Distribution(n, "applied", specifier="" if s == "*" else s) for n, s in pins.items()}
    return replace(facts, environment=replace(facts.environment, distributions=known))


def _host_words(finding: Finding) -> str:
    """Return what to ask of whoever looks after the machine, word for word; empty where nothing helps."""
    asked = next((one for one in advised(finding) if one.administrators), None)
    if asked is None:
        return ""
    lines = "; ".join(asked.remedy.commands)
    return f"Please: {asked.remedy.text}{f' ({lines})' if lines else ''} Because: {finding.summary}"
