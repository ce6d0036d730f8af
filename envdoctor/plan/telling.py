"""A course put into the words of a plan: what changes, what to type, what to ask for, what it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envdoctor.facts import Observed
from envdoctor.findings import Certainty, Finding, Move, Plan, Severity
from envdoctor.matrix.driver_tables import ceiling_allows, least_driver, least_driver_row
from envdoctor.plan.advice import advised, variables_of
from envdoctor.plan.case import Case
from envdoctor.plan.courses import Course, brought, is_met
from envdoctor.plan.downloads import download_of
from envdoctor.plan.following import identity
from envdoctor.plan.installing import built_for, install_lines
from envdoctor.plan.wishes import UNEXPLAINED
from envdoctor.rules.foreign import foreign_backend
from envdoctor.rules.view import View
from envdoctor.solve.installer import Installations
from envdoctor.solve.mending import has_wheel

_INSTALLED = "installed"
"""The version of what is installed again where it is not told."""


def told(case: Case, course: Course) -> Plan:
    """Return a course as the plan of a case."""
    doubts = tuple(dict.fromkeys(_doubts(case, course)))
    left = list(_unsolved(case, course))
    unsolved = [one for one in left if one.consequence_of not in {root.id for root in left}]
    moves = tuple(_moves(case, course))
    graver = [f for f in unsolved if f.severity is Severity.ERROR or f.id == UNEXPLAINED]
    return Plan(
        complete=not (course.errors or graver or doubts or case.by_hand),
        moves=moves,
        commands=(*_commands(case, course), *_shell(case)),
        settings=case.settings,
        host=tuple(dict.fromkeys(filter(None, map(_host_words, [*_helped(case), *unsolved])))),
        unsolved=tuple(dict.fromkeys(finding.id for finding in unsolved)),
        by_hand=case.by_hand,
        notes=(*_brought(case, course), *doubts),
        download=download_of(moves, case.facts, case.matrix),
    )


def _brought(case: Case, course: Course) -> Iterator[str]:
    """Yield the warnings that the changes bring."""
    for finding in brought(case, course):
        yield f"it leaves: {finding.summary.rstrip('.')} ({finding.id})"


def _unsolved(case: Case, course: Course) -> Iterator[Finding]:
    """Yield the errors and warnings that stand afterwards, or of which nothing was mended."""
    standing, moved = course.standing, course.moved
    aside = {identity(finding) for finding in case.aside}
    met = {identity(f) for f in case.findings if is_met(f, course.facts, moved)} | aside
    answered = {text for f in case.findings if identity(f) in met for text in f.explains}
    solved = {f.id for f in case.findings if identity(f) in met and identity(f) not in standing}
    for finding in case.findings:
        if finding.severity is Severity.NOTE or identity(finding) in aside:
            continue
        follows = finding.consequence_of in solved
        accounted = follows or (bool(finding.explains) and set(finding.explains) <= answered)
        if identity(finding) in standing or not (identity(finding) in met or accounted):
            yield finding


def _helped(case: Case) -> Iterator[Finding]:
    """Yield the findings whose best way takes whoever looks after the machine beside an installer."""
    yield from (wish.finding for wish in case.wishes if wish.packages and wish.ways[0].administrators)


def _moves(case: Case, course: Course) -> Iterator[Move]:
    old = {name: one.version or one.begun for name, one in case.facts.environment.distributions.items()}
    yield from (Move(name, old.get(name), None) for name in course.gone)
    for name in sorted(course.versions, key=lambda n: (n not in old, n)):
        yield Move(name, old.get(name), course.versions[name])
    yield from (Move(name, old.get(name), spec) for name, spec in course.open_.items())
    yield from (Move(name, old.get(name) or _INSTALLED, old.get(name) or _INSTALLED) for name in course.again)


def _commands(case: Case, course: Course) -> tuple[str, ...]:
    pins = course.remedy.pins if course.remedy else ()
    environment = case.facts.environment
    options = _options(case, course)
    whole = {name for wish in course.wishes for way in wish.ways[:1] for name in way.whole}
    lines = install_lines(environment, pins, course.open_, course.gone, course.again, options, whole)
    return built_for(lines, case.facts)


def _shell(case: Case) -> tuple[str, ...]:
    """Return the lines for the shell that starts the run, as the machine's own shell takes them."""
    if case.facts.host.os.get() != "windows":
        return case.shell
    return tuple(f"set {name}={value or ''}" for name, value in variables_of(case.shell).items())


def _options(case: Case, course: Course) -> list[str]:
    """Return what the remedies tell an installer of builds, where something is built from source at all."""
    listed = case.facts.environment.distributions
    again = {name: listed[name].version if name in listed else None for name in course.again}
    coming: Mapping[str, str | None] = {**dict.fromkeys(course.open_), **again, **course.versions}
    if all(has_wheel(case.matrix, name, version) for name, version in coming.items()):
        return []
    return sorted({o for wish in course.wishes for way in wish.ways[:1] for o in way.options})


def _doubts(case: Case, course: Course) -> Iterator[str]:
    for name in course.open_:
        yield f"the releases of {name} are not known here: the installer chooses one"
    for name in course.again:
        yield f"only the next run shows whether {name} works once it is installed again"
    installations = Installations(case.facts, case.matrix, case.view.complete)
    for name, version in course.versions.items():
        if "+" not in version and (why := installations.barred({name: f"=={version}"})):
            yield why
    if why := _driver_doubt(case, course):
        yield why
    if course.remedy:
        yield from course.remedy.doubts
        if not isinstance(case.facts.environment.python, Observed):
            yield "the Python is not told: whether these releases install on it is not known"
    for finding in case.tried:
        seen = finding.explains or identity(finding) in course.standing
        if seen and finding.severity is Severity.ERROR:
            yield f"{finding.id}: only the next run shows whether the setting mends it"
    for finding in case.meant:
        if finding.certainty is Certainty.UNCERTAIN and finding.severity is Severity.ERROR:
            yield f"{finding.id} is a guess"


def _driver_doubt(case: Case, course: Course) -> str:
    """Return what hangs on a driver that is not told: that it runs the CUDA a new torch is built with."""
    cuda, driver = View(course.facts, case.matrix).torch_cuda.get(), case.facts.driver
    if "torch" not in course.versions or cuda is None or driver.version.get() or driver.cuda.get():
        return ""
    before, row = case.view.torch_cuda.get(), least_driver_row(case.matrix, cuda)
    if row is None or (before and ceiling_allows(before, cuda)) or foreign_backend(case.view):
        return ""
    least = least_driver(row, case.facts.host.os.get())
    new = f"torch {course.versions['torch']} brings CUDA {cuda}"
    return f"the driver is not told: {new}, which needs {least} or newer"


def _host_words(finding: Finding) -> str:
    """Return what to ask of whoever looks after the machine; empty where nothing helps, or a cause does."""
    asked = next((one for one in advised(finding) if one.administrators), None)
    if asked is None or finding.consequence_of:
        return ""
    lines = "; ".join(asked.remedy.commands)
    what = asked.remedy.text.removeprefix("Or ")
    return f"Please: {what[:1].upper()}{what[1:]}{f' ({lines})' if lines else ''} Because: {finding.summary}"
