"""What following advice leads to: its changes put into the facts, and the facts judged again.

A remedy is shown only when the environment that it leads to has no error that was not there before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envdoctor.commands import install_commands
from envdoctor.facts import Distribution, DriverVersion, Facts, Observed
from envdoctor.facts.names import NOT_PACKAGES
from envdoctor.findings import Certainty, Finding, Remedy, Severity
from envdoctor.matrix import Matrix
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.view import View
from envdoctor.solve.installer import Installations
from envdoctor.solve.remedy import NoRemedy, complete_remedy
from envdoctor.target.stack import stack_of
from envdoctor.values import replace

APPLIED = "applied"


def apply_changes(
    facts: Facts, versions: Mapping[str, str], gone: Sequence[str] = (), again: Sequence[str] = ()
) -> Facts:
    """Return the facts with those versions installed; what an earlier run said is no fact of the result.

    `gone` are taken out, `again` put in once more as they are, which mends their files.
    """
    environment = facts.environment
    distributions = {name: one for name, one in environment.distributions.items() if name not in gone}
    for name, version in versions.items():
        if name not in ("python", "nvidia-driver"):
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
        driver = replace(driver, version=Observed(DriverVersion.parse(told), APPLIED))
    return replace(facts, environment=changed, driver=driver, symptoms=(), errors=(), verdicts=())


def new_errors(before: Sequence[Finding], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Return the errors of `facts` that do not stand among the findings `before`."""
    known = {identity(finding) for finding in before}
    _, found = run_checks(facts, matrix, RULES)
    return tuple(f for f in found if f.severity is Severity.ERROR and identity(f) not in known)


def identity(finding: Finding) -> tuple[str, str]:
    """Return what two findings of the same thing share."""
    named = finding.id in ONE_A_PACKAGE and finding.evidence
    return finding.id, finding.evidence[-1].fact if named else ""


ONE_A_PACKAGE = frozenset({"REQUIREMENT-UNMET", "TRANSFORMERS-MINIMUM"})
"""Findings that stand once for each package in want; the last of their evidence names it."""


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


ELSEWHERE = ("index", "--torch-backend", "://", "--no-deps", "conda ", " -f ", "--find-links", "==")
"""What a command has that installs other files than the newest of the default index."""


def _takes_the_index(remedy: Remedy) -> bool:
    """True when its commands install what its pins admit, and nothing but that."""
    if remedy.commands == install_commands(remedy.pins):
        return True
    return not any(word in command for command in remedy.commands for word in ELSEWHERE)


class _Followed:
    """The remedies of one diagnosis, each followed in thought before it is offered."""

    def __init__(self, facts: Facts, matrix: Matrix, findings: tuple[Finding, ...]) -> None:
        self._facts, self._matrix = facts, matrix
        self._before = findings
        self._complete = View(facts, matrix).complete
        self._installations = Installations(facts, matrix, self._complete)
        self._left = COMPLETED

    def remedies(self, finding: Finding, complete: bool) -> tuple[Remedy, ...]:
        """Return the remedies that hold; with `complete` the first plain installation is made whole."""
        kept: list[Remedy] = []
        for remedy in finding.remedies:
            plain = bool(remedy.pins) and remedy.commands == install_commands(remedy.pins)
            whole = self._whole(remedy) if plain and complete else None
            complete = complete and whole is None
            if whole is None and self._holds(remedy):
                whole = remedy
            if whole is None and plain:
                whole = self._whole(remedy)
            if whole is not None:
                kept.append(whole)
        return tuple(kept)

    def _holds(self, remedy: Remedy) -> bool:
        """True when what following it leads to has no new error, or cannot be foreseen."""
        if not remedy.pins:
            return True
        pins = {name: spec for name, spec in remedy.pins.items() if name not in NOT_PACKAGES}
        versions: dict[str, str] | None = {}
        if pins and _takes_the_index(remedy):
            versions = self._installations.foresee(pins)
        return versions is None or self._leads_to_order(versions)

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
        if not self._leads_to_order(told):
            return None
        others = [f"{n} {old} to {new}" for n, (old, new) in found.changes.items() if n not in remedy.pins]
        more = f" What depends on it moves along: {', '.join(others)}." if others else ""
        return replace(remedy, text=remedy.text + more, commands=found.commands)

    def _leads_to_order(self, versions: Mapping[str, str]) -> bool:
        changed = apply_changes(self._facts, versions)
        return not new_errors(self._before, changed, self._matrix)
