"""What a plan is to be made for: the findings on facts, what they wish, and what the user wants kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from envdoctor.facts import Facts
from envdoctor.findings import Finding, SettingMove
from envdoctor.matrix import Matrix
from envdoctor.plan.following import identity
from envdoctor.plan.settings import setting_moves
from envdoctor.plan.wishes import Wish, considered, wishes_of
from envdoctor.rules.view import View
from envdoctor.values import dataclass


@dataclass(frozen=True)
class Case:
    """Findings on facts; `keep` are packages that stay as they are, with `newest` what moves goes far."""

    findings: tuple[Finding, ...]
    facts: Facts
    matrix: Matrix
    keep: tuple[str, ...] = ()
    newest: bool = False

    @cached_property
    def view(self) -> View:
        """The facts as rules see them."""
        return View(self.facts, self.matrix)

    @cached_property
    def known(self) -> frozenset[tuple[str, str]]:
        """What was found, by what two findings of the same thing share."""
        return frozenset(map(identity, self.findings))

    @cached_property
    def meant(self) -> tuple[Finding, ...]:
        """What the plan is for: errors and warnings that are not mere guesses, else what is left."""
        return considered(self.findings)

    @cached_property
    def wishes(self) -> tuple[Wish, ...]:
        """What the findings wish changed, worst first."""
        return tuple(wishes_of(self.meant))

    @cached_property
    def aside(self) -> tuple[Finding, ...]:
        """The findings that settings, variables and hands answer, and no package."""
        return tuple(wish.finding for wish in self._beside)

    @cached_property
    def by_hand(self) -> tuple[str, ...]:
        """What is to be done by hand: a change of one's own code, mostly."""
        return tuple(f"{w.ways[0].remedy.text} ({w.finding.id})" for w in self._beside if w.by_hand)

    @cached_property
    def tried(self) -> tuple[Finding, ...]:
        """The findings that settings and variables answer, as the next run shows."""
        return tuple(wish.finding for wish in self._beside if not wish.by_hand)

    @cached_property
    def settings(self) -> tuple[SettingMove, ...]:
        """The settings that change, each once."""
        told = {k: move for w in self._beside for k, move in setting_moves(self.facts, w.ways[0].settings)}
        return tuple(told.values())

    @cached_property
    def shell(self) -> tuple[str, ...]:
        """Lines for the shell that starts the run."""
        return tuple(dict.fromkeys(line for wish in self._beside for line in wish.ways[0].shell))

    @property
    def _beside(self) -> Sequence[Wish]:
        return [wish for wish in self.wishes if wish.ways and not wish.packages]
