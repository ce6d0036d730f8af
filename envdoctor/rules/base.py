"""What a rule is: an id, a title and a pure function from the facts and the matrix to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Literal

from envdoctor.findings import Finding
from envdoctor.rules.view import View
from envdoctor.values import NamedTuple, dataclass


class NotWhole(Exception):
    """A part of the facts could not be read, so that no answer is whole; the message names it."""


class Skip(Exception):
    """A rule cannot judge; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check. `check` yields findings, or raises Skip (or FactUnavailable) with the reason."""

    id: str
    title: str
    check: Callable[[View], Iterable[Finding]]
    source: str = ""


Subject = Literal["", "symptoms", "settings", "verdicts", "warnings"]


class Listed(NamedTuple):
    """A rule by its id; its module is read when the facts hold what it judges.

    `of` names what it says nothing without: error lines, settings, verdicts of smoke kernels, or warnings.
    """

    id: str
    module: str
    of: Subject = ""

    @property
    def rule(self) -> Rule:
        """The rule itself."""
        rules: tuple[Rule, ...] = import_module(f"envdoctor.rules.{self.module}").RULES
        return next(rule for rule in rules if rule.id == self.id)

    def check(self, view: View) -> Iterable[Finding]:
        """Yield findings, or raise Skip (or FactUnavailable) with the reason."""
        if self.of and not getattr(view.facts, self.of):
            raise Skip(NOTHING[self.of])
        return self.rule.check(view)


def family(module: str, ids: str, of: Subject = "") -> tuple[Listed, ...]:
    """Return the rules of one module, by their ids."""
    return tuple(Listed(identity, module, of) for identity in ids.split())


NOTHING = {
    "symptoms": "no error line is told",
    "settings": "no settings are told",
    "verdicts": "no smoke kernels were run (diagnose --smoke)",
    "warnings": "no warning is told, or an error stands beside it",
}
"""Why a rule is skipped whose kind of facts is not there."""

NO_LINE = "no error line that it explains is told"
"""Why a row is skipped that speaks of symptoms alone."""

FOREIGN, UNEXPLAINED, SENTENCES = "BACKEND-NOT-JUDGED", "UNEXPLAINED-ERROR", "SENTENCES-NOT-JUDGED"
AFTERWARDS = (
    (FOREIGN, "the accelerator is one that is judged here"),
    (UNEXPLAINED, "every error line is accounted for"),
    (SENTENCES, "no sentence of a person is left without an answer"),
)
"""Ids and titles of the checks that look at what the others found."""
