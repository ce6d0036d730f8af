"""Courses of changes: what wishes ask of the solver together, followed in thought, and judged again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field

from packaging.version import InvalidVersion

from envdoctor.commands import ANY
from envdoctor.facts import Distribution, Facts
from envdoctor.findings import Finding, Severity
from envdoctor.plan.advice import advised
from envdoctor.plan.case import Case
from envdoctor.plan.following import apply_changes, identity
from envdoctor.plan.settings import with_settings
from envdoctor.plan.wishes import Leeway, Wish, considered, demands_of, once_more, open_pins
from envdoctor.rules import RULES, run_checks
from envdoctor.solve.mending import Demands
from envdoctor.solve.nodes import TORCH
from envdoctor.solve.remedy import NoRemedy, Remedy, mend
from envdoctor.solve.variants import OWN_RUNTIME
from envdoctor.specifiers import InvalidSpecifier, SpecifierSet
from envdoctor.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Course:
    """A set of changes, what it leads to, and what is found there.

    `versions` are those of every package that comes in or moves, `open_` specifiers of what an installer
    chooses, `gone` what is taken out, `again` what is put in once more as it is.
    """

    facts: Facts
    after: tuple[Finding, ...]
    wishes: tuple[Wish, ...] = ()
    remedy: Remedy | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    open_: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    again: tuple[str, ...] = ()

    @property
    def errors(self) -> list[Finding]:
        """The errors that stand where it leads."""
        return [finding for finding in self.after if finding.severity is Severity.ERROR]

    @property
    def standing(self) -> set[tuple[str, str]]:
        """What is found where it leads."""
        return {identity(finding) for finding in self.after}

    @property
    def moved(self) -> set[str]:
        """The packages that it touches."""
        return {*self.versions, *self.open_, *self.gone, *self.again}

    @property
    def size(self) -> int:
        """How many installed packages change; torch's CUDA libraries follow torch."""
        changes = self.remedy.changes if self.remedy else {}
        return sum(not name.startswith(OWN_RUNTIME) for name in {*changes, *self.gone, *self.again})


def stay(case: Case) -> Course:
    """Return the course that changes settings alone."""
    if not case.settings and not case.shell:
        return Course(case.facts, case.findings)
    facts = apply_changes(with_settings(case.facts, case.settings, case.shell), {})
    return Course(facts, run_checks(facts, case.matrix, RULES)[1])


def follow(case: Case, wishes: Sequence[Wish]) -> Course | None:
    """Return the best course that answers the wishes together; None where there is none.

    What the findings advise comes first; where that is more than one change, or impossible, any other
    release of what they show may answer as well, and the smallest course is taken.
    """
    found: list[Course] = []
    asked: list[Demands] = []
    for leeway in Leeway:
        demands = _demands(case, wishes, leeway)
        if demands in asked:
            continue
        asked.append(demands)
        course = _followed(case, wishes, demands)
        found += [course] if course else []
        if course and left(case, course) == (0, 0) and course.size <= 1:
            break
    return min(found, key=lambda course: weight(case, course), default=None)


def weight(case: Case, course: Course) -> tuple[int, int, int]:
    """Return how much a course leaves, and how much it changes: errors, findings, packages."""
    return *left(case, course), course.size


def left(case: Case, course: Course) -> tuple[int, int]:
    """Return how many errors stand where a course leads, and how much of what is meant is not mended."""
    standing, moved = course.standing, course.moved
    mended = [f for f in case.meant if identity(f) not in standing and is_met(f, course.facts, moved)]
    return len(course.errors), len(case.meant) - len(mended) + len(brought(case, course))


def brought(case: Case, course: Course) -> list[Finding]:
    """Return the warnings that a course brings."""
    return [
        f
        for f in considered(course.after)
        if f.severity is Severity.WARNING and identity(f) not in case.known
    ]


def can_be_met(case: Case, wishes: Sequence[Wish]) -> bool:
    """True when the solver has an answer to what the wishes demand."""
    demands = _demands(case, wishes, Leeway.NONE)
    return not demands.solvable or not isinstance(mend(case.facts, case.matrix, demands), NoRemedy)


def _followed(case: Case, wishes: Sequence[Wish], demands: Demands) -> Course | None:
    remedy = _nearest(case, demands) if demands.solvable else None
    if isinstance(remedy, NoRemedy):
        return None
    versions = dict(_versions(case, remedy)) if remedy else {}
    again = tuple(name for name in once_more(wishes, case.view) if name not in versions)
    gone = tuple(sorted(demands.gone - versions.keys() - set(case.keep)))
    open_ = {n: spec for n, spec in open_pins(wishes, case.matrix).items() if n not in case.keep}
    facts = apply_changes(with_settings(case.facts, case.settings, case.shell), versions, gone, again)
    facts = _with_open(facts, open_)
    after = run_checks(facts, case.matrix, RULES)[1]
    return Course(facts, after, tuple(wishes), remedy, versions, open_, gone, again)


def _demands(case: Case, wishes: Sequence[Wish], leeway: Leeway) -> Demands:
    return demands_of(wishes, case.view, case.matrix, case.keep, case.newest, leeway)


def _nearest(case: Case, demands: Demands) -> Remedy | NoRemedy:
    """Solve; where only another build of an installed release is wished, that release first."""
    listed = case.facts.environment.distributions
    may_move = {name for ways in demands.either for way in ways for name in way}
    same = {
        name: f"=={(listed[name].version or '').partition('+')[0]}"
        for name, spec in demands.pins.items()
        if spec == ANY and name in listed and listed[name].version and name not in may_move
    }
    for kept in (same, {name: spec for name, spec in same.items() if name == TORCH}) if same else ():
        found = mend(case.facts, case.matrix, replace(demands, pins={**demands.pins, **kept}))
        if not isinstance(found, NoRemedy):
            return found
    return mend(case.facts, case.matrix, demands)


def _versions(case: Case, remedy: Remedy) -> Iterator[tuple[str, str]]:
    """Yield what comes in or moves; of a list that is not whole, what is not told may be there."""
    told = {*remedy.changes, *(pin.name for pin in remedy.pins)}
    for name, version in remedy.versions.items():
        if case.view.complete or name in told:
            yield name, version


def _with_open(facts: Facts, pins: Mapping[str, str]) -> Facts:
    """Return the facts with packages of which only the specifier is known."""
    if not pins:
        return facts
    known = dict(facts.environment.distributions)
    known |= {n: Distribution(n, "applied", specifier="" if s == ANY else s) for n, s in pins.items()}
    return replace(facts, environment=replace(facts.environment, distributions=known))


def is_met(finding: Finding, facts: Facts, moved: Set[str]) -> bool:
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
    if one is None or specifier == ANY:
        return one is not None
    if one.version is None:
        return one.specifier == specifier
    try:
        return SpecifierSet(specifier).contains(one.version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False
