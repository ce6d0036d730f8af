"""What following advice leads to: its changes put into the facts, and the facts judged again.

A remedy is shown only when the environment that it leads to has no error that was not there before; one
that leaves a new warning is made whole, or says what it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands
from envdoctor.facts import (
    NOT_TOLD,
    REPORTED,
    TOLD_CAUSE,
    TOLD_WAY,
    Distribution,
    DriverVersion,
    Facts,
    Observed,
)
from envdoctor.facts.names import NOT_PACKAGES, normalise
from envdoctor.findings import Certainty, Finding, Remedy, Severity
from envdoctor.matrix import Matrix
from envdoctor.plan.advice import BACKEND, installs_plainly, read_advice, with_pins
from envdoctor.plan.narrowing import Neighbours, is_plain
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.view import View
from envdoctor.solve.installer import Installations
from envdoctor.solve.remedy import NoRemedy, complete_remedy
from envdoctor.target.stack import stack_of
from envdoctor.values import replace

APPLIED = "applied"
_OF_THE_FAILURE = (REPORTED, TOLD_CAUSE, TOLD_WAY)
"""How notes begin that tell of what failed before."""


def apply_changes(
    facts: Facts, versions: Mapping[str, str], gone: Sequence[str] = (), again: Sequence[str] = ()
) -> Facts:
    """Return the facts with those versions installed; what an earlier run said is no fact of the result.

    `gone` are taken out, `again` put in once more as they are, which mends their files.
    """
    environment = facts.environment
    distributions = {name: one for name, one in environment.distributions.items() if name not in gone}
    for name, version in versions.items():
        if name not in ASIDE:
            distributions[name] = Distribution(name, APPLIED, version=version)
    whole = {name for name in (*versions, *again) if name in environment.distributions}
    for name in whole & distributions.keys():
        distributions[name] = replace(distributions[name], problems=())
    mended = {f"{name}: {text}" for name in whole for text in environment.distributions[name].problems}
    changed = replace(
        environment,
        distributions=distributions,
        builds={name: told for name, told in environment.builds.items() if name not in (*versions, *gone)},
        problems=tuple(text for text in environment.problems if text not in mended),
    )
    if python := versions.get("python"):
        changed = replace(changed, python=Observed(python, APPLIED))
    driver = facts.driver
    if told := versions.get("nvidia-driver"):
        moved = Observed(DriverVersion.parse(told), APPLIED)
        together = driver.user_version.get() == driver.version.get()
        driver = replace(
            driver, version=moved, user_version=moved if together else driver.user_version, cuda=NOT_TOLD
        )
    notes = tuple(note for note in facts.notes if not note.startswith(_OF_THE_FAILURE))
    return replace(
        facts, environment=changed, driver=driver, symptoms=(), errors=(), verdicts=(), notes=notes
    )


def new_findings(before: Sequence[Finding], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Return the errors and warnings of `facts` that do not stand among the findings `before`; no guesses."""
    known = {identity(finding) for finding in before}
    _, found = run_checks(facts, matrix, RULES)
    return tuple(
        f
        for f in found
        if f.severity is not Severity.NOTE
        and (f.severity is Severity.ERROR or f.certainty is not Certainty.UNCERTAIN)
        and identity(f) not in known
    )


def identity(finding: Finding) -> tuple[str, str]:
    """Return what two findings of the same thing share."""
    named = finding.id in ONE_A_PACKAGE and finding.evidence
    return finding.id, finding.evidence[-1].fact if named else ""


ONE_A_PACKAGE = frozenset({"REQUIREMENT-UNMET", "TRANSFORMERS-MINIMUM"})
"""Findings that stand once for each package in want; the last of their evidence names it."""


LEAVES = "It leaves what another step must mend: "
"""Opens what a remedy's text tells of the warnings that following it brings."""
COMPLETED = 3
"""How many remedies are completed: each costs tenths of a second."""


def proven_remedies(findings: Sequence[Finding], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Return the findings with such remedies only as lead to no error that was not there.

    The first remedies of the worst are completed to what leaves all else in order.
    """
    followed = _Followed(facts, matrix, tuple(findings))
    worst = [
        f for f in findings if f.severity is not Severity.NOTE and f.certainty is not Certainty.UNCERTAIN
    ]
    chosen = {finding.id for finding in worst[:COMPLETED]} if len(stack_of(facts).versions) > 1 else set()
    return tuple(replace(f, remedies=followed.remedies(f, f.id in chosen)) for f in findings)


ELSEWHERE = ("conda ", "docker ", "apt ", "apt-get ")
"""What a command opens with that installs by other means than the package index's files."""
ASIDE = ("python", "nvidia-driver")
"""What pins may name that facts tell beside the packages."""
_OTHERWISE = re.compile(r" --?(?:no-|index|extra-index|find-links|pre\b|force|e\b|r\b)|://")
"""Options with which pip does something else than to put in releases of the index."""
_BOUND = re.compile(r"([<>=~!]+)\s*(\d+(?:\.\d+)*)")
_LEAST = re.compile(r">=\s*(\d[\w.]*)")
_EXACT = re.compile(r"(?<![\w.-])([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==(\d[\w.+!]*)")


def foresee(remedy: Remedy, installations: Installations) -> dict[str, str] | None:
    """Return the versions that following a remedy leads to, by name; None where that is not known.

    What its commands name exactly is put in, else the newest that the pins admit, and what these pull along;
    a driver and a Python at the release that is named.
    """
    if any(command.startswith(ELSEWHERE) for command in remedy.commands):
        return None
    pins = {normalise(name): specifier for name, specifier in remedy.pins.items()}
    said = " ".join(remedy.commands)
    exact = {normalise(name): version.rstrip(".") for name, version in _EXACT.findall(said)}
    if variant := BACKEND.search(said):
        from envdoctor.matrix.torch_wheels import COMPANIONS

        built = {name for name, version in exact.items() if "+" not in version} & {"torch", *COMPANIONS}
        exact |= {name: f"{exact[name]}+{variant[1]}" for name in built}
    open_ = {n: spec for n, spec in pins.items() if n not in NOT_PACKAGES and n not in exact}
    alone = any("--no-deps" in command for command in remedy.commands)
    asked = open_ | ({} if alone else {name: f"=={version}" for name, version in exact.items()})
    pulled = installations.foresee(asked) if asked else {}
    if pulled is None and open_:
        return None
    return {**exact, **(pulled or {}), **{name: _reached(pins[name]) for name in ASIDE if name in pins}}


def _installs(remedy: Remedy) -> bool:
    """True where its commands do no more than have pip put in what its pins name."""
    return all(line.startswith("pip install ") and not _OTHERWISE.search(line) for line in remedy.commands)


def _reached(specifier: str) -> str:
    """Return the release that a driver's or a Python's specifier names, or the one below an upper bound."""
    operator, version = _BOUND.findall(specifier)[0]
    *head, last = version.split(".")
    return ".".join((*head, str(int(last) - 1))) if operator == "<" and last != "0" else version


def _exactly(specifier: str, version: str | None) -> str:
    """Return the pin of the release that was solved for: others of the range may not suit what stays."""
    return f"=={version.partition('+')[0]}" if version else specifier


class _Followed:
    """The remedies of one diagnosis, each followed in thought before it is offered."""

    def __init__(self, facts: Facts, matrix: Matrix, findings: tuple[Finding, ...]) -> None:
        self._facts, self._matrix = facts, matrix
        self._before = findings
        self._complete = View(facts, matrix).complete
        self._installations = Installations(facts, matrix, self._complete)
        self._neighbours = Neighbours(facts, matrix)
        self._left = 2 * COMPLETED  # as many again for those that would leave something

    def remedies(self, finding: Finding, complete: bool) -> tuple[Remedy, ...]:
        """Return the remedies that hold; with `complete` the first plain installation is made whole."""
        kept: list[Remedy] = []
        for remedy in map(self._neighbours.narrowed, map(with_pins, finding.remedies)):
            plain = is_plain(remedy)
            whole = self._whole(remedy) if plain and complete else None
            complete = complete and whole is None
            if whole is None:
                whole = self._as_it_is(remedy, plain)
            if whole is not None:
                kept.append(whole)
        return tuple(kept)

    def _as_it_is(self, remedy: Remedy, plain: bool) -> Remedy | None:
        """Return a remedy of which nothing new follows, else made whole, else with what it leaves."""
        versions = foresee(remedy, self._installations) if remedy.pins else None
        held = self._told(remedy, versions) if versions else remedy
        if why := self._barred(remedy):
            return replace(remedy, text=f"{remedy.text} But {why}.")
        if versions and held is remedy:
            return self._neighbours.nearest(remedy, versions)
        if held is remedy or not (plain or (held is None and _installs(remedy))):
            return held
        return self._whole(remedy) or held or (self._least(remedy) if plain else None)

    def _least(self, remedy: Remedy) -> Remedy | None:
        """Return a remedy held to the lowest releases that it admits, the nearest to what is there."""
        bounds = {name: _LEAST.search(specifier) for name, specifier in remedy.pins.items()}
        pins = {name: f"=={match[1]}" for name, match in bounds.items() if match}
        versions = self._installations.foresee(pins) if len(pins) == len(bounds) else None
        text = f"{remedy.text} Newer ones do not suit what else is here."
        held = replace(remedy, text=text, commands=install_commands(pins), pins=pins)
        return self._told(held, versions) if versions else None

    def _barred(self, remedy: Remedy) -> str:
        pins = read_advice(remedy).pins
        return self._installations.barred(pins) if pins and installs_plainly(remedy) else ""

    def _told(self, remedy: Remedy, versions: Mapping[str, str]) -> Remedy | None:
        """Return a remedy with the warnings that following it leaves; None where an error is new."""
        worse = new_findings(self._before, apply_changes(self._facts, versions), self._matrix)
        if any(finding.severity is Severity.ERROR for finding in worse):
            return None
        left = "; ".join(finding.summary.rstrip(".") for finding in worse)
        return replace(remedy, text=f"{remedy.text} {LEAVES}{left}.") if left else remedy

    def _whole(self, remedy: Remedy) -> Remedy | None:
        if self._left == 0:
            return None
        self._left -= 1
        found = complete_remedy(self._facts, self._matrix, remedy.pins)
        if isinstance(found, NoRemedy):
            return None
        told = {
            name: version
            for name, version in found.versions.items()
            if self._complete or name in found.changes or name in remedy.pins
        }
        others = [f"{n} {old} to {new}" for n, (old, new) in found.changes.items() if n not in remedy.pins]
        more = f" What depends on it moves along: {', '.join(others)}." if others else ""
        pins = {name: _exactly(spec, found.versions.get(name)) for name, spec in remedy.pins.items()}
        return self._told(replace(remedy, text=remedy.text + more, commands=found.commands, pins=pins), told)
