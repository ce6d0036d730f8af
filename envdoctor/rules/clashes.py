"""Wishes that an installer names as excluding one another: who wants what of which package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.specifiers import SpecifierSet

from envdoctor.commands import install_commands
from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.ranges import parse_version, specifier_in
from envdoctor.rules.view import View, symptoms

SOURCE = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"
SHOWN = 3


def check_clashes(view: View) -> Iterable[Finding]:
    """Find the package of which an installer's message names two wishes."""
    wishes = [s for s in symptoms(view, "SYM-PIP-DEPENDS", "SYM-PIP-WISH") if _specifier(s)]
    if not wishes:
        raise Skip("no installer's conflict is told")
    for name in dict.fromkeys(normalise(s.captured["need"]) for s in wishes):
        of_it = [s for s in wishes if normalise(s.captured["need"]) == name]
        if excluding := _excluding(view, name, of_it):
            yield _finding(view, name, excluding)


def _excluding(view: View, name: str, wishes: Sequence[Symptom]) -> Sequence[Symptom]:
    """Return the wishes that exclude one another; none where a known release suits all."""
    package = package_facts(view, name)
    known = package.versions if package else []
    sets = [(wish, SpecifierSet(_specifier(wish), prereleases=True)) for wish in wishes]
    named = [clause.version for _, told in sets for clause in told if clause.operator in ("==", ">=", "<=")]
    releases = [*known, *(version for version in named if parse_version(version))]

    def suit(*together: SpecifierSet) -> bool:
        return any(all(one.contains(release) for one in together) for release in releases)

    if len({str(told) for _, told in sets}) < 2 or suit(*(told for _, told in sets)):
        return ()
    at_odds = [wish for wish, told in sets if not all(suit(told, other) for _, other in sets)]
    return at_odds or wishes


def _specifier(symptom: Symptom) -> str:
    return specifier_in(symptom.captured["spec"].replace(" and ", ","))


def _who(symptom: Symptom) -> str:
    return symptom.captured.get("who") or "you"


def _finding(view: View, name: str, wishes: Sequence[Symptom]) -> Finding:
    told = dict.fromkeys(
        f"{_who(s)} {'want' if 'who' not in s.captured else 'wants'} {_specifier(s)}" for s in wishes
    )
    return Finding(
        id="PIP-CLASH",
        severity=Severity.ERROR,
        summary=f"{name} is asked for twice in ways that exclude one another: {', '.join([*told][:SHOWN])}",
        cause="Each release states what it needs of others; an installer finds no release that suits both.",
        evidence=tuple(Evidence(s.id, s.text, s.source) for s in wishes[:SHOWN]),
        remedies=tuple(_remedies(name, wishes)),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=tuple(dict.fromkeys([*(s.id for s in wishes), "SYM-PIP-CONFLICT"])),
        prior=0.85,
    )


def _remedies(name: str, wishes: Sequence[Symptom]) -> Iterator[Remedy]:
    asking = {_who(s): _specifier(s) for s in wishes if "who" in s.captured}
    for who, specifier in [*asking.items()][:SHOWN]:
        pins = {name: specifier}
        yield Remedy(f"Give way to {who}: {name}{specifier}.", install_commands(pins), pins)
    owners = " or ".join(dict.fromkeys(who.partition(" ")[0] for who in asking))
    yield Remedy(
        f"Or another release of {owners}, which takes the other {name}: let it be computed."
        if owners
        else f"Or drop the wish for {name}.",
        ("envdoctor pin -r requirements.txt",),
    )
    yield Remedy(f"Where the bound is known to be too strict, install {owners or name} with --no-deps.")


RULES = (Rule("PIP-CLASH", "an installer's message names no wishes that exclude one another", check_clashes),)
