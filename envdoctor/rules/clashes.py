"""Wishes that an installer names as excluding one another: who wants what of which package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands, pip_install
from envdoctor.facts import Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts, place_of
from envdoctor.rules.ranges import parse_version, specifier_in
from envdoctor.rules.view import View, captured, symptoms
from envdoctor.specifiers import SpecifierSet

SOURCE = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"
UV_SOURCE = "https://github.com/astral-sh/uv/blob/0.12.5/docs/concepts/projects/config.md"
PLATFORMS = ("sys_platform", "platform_machine", "platform_system", "os_name", "implementation_name")
SHOWN = 3
_OWN = ("your project", "your workspace")
"""How uv calls what it locks."""


def check_clashes(view: View) -> Iterable[Finding]:
    """Find the package of which an installer's message names two wishes."""
    told = [s for s in symptoms(view, "SYM-PIP-DEPENDS", "SYM-PIP-WISH") if _specifier(s)]
    wishes = list({tuple(sorted(s.captured.items())): s for s in told}.values())
    wishes = wishes or _said_of_what_is_here(view)
    if not wishes:
        raise Skip("no installer's conflict is told")
    names = dict.fromkeys(normalise(s.captured["need"]) for s in wishes)
    of_names = {name: [s for s in wishes if normalise(s.captured["need"]) == name] for name in names}
    at_odds = {name: found for name, told in of_names.items() if (found := _excluding(view, name, told))}
    for name, excluding in at_odds.items():
        yield _finding(view, name, excluding)
    if len(of_names) == 1 and not at_odds and len({_asking(wish) for wish in wishes} - {"you"}) == 1:
        yield _none_offered(next(iter(of_names)), wishes)


def _said_of_what_is_here(view: View) -> list[Symptom]:
    """Return what lines tell that two packages require, each in one release, and in no other than is here."""
    said = [s for s in symptoms(view, "SYM-REQUIRES-SAID") if _specifier(s)]
    askers = {tuple(_told(s.captured["who"])) for s in said}
    names = {normalise(name) for name, _ in askers}
    here = all(view.version_text(normalise(name)) in (version, None) for name, version in askers)
    return said if here and 1 < len(names) == len(askers) else []


def _asking(wish: Symptom) -> str:
    """Return the package that wants something, without its release."""
    return _told(_who(wish))[0]


def _told(who: str) -> list[str]:
    """Return the package, and its release if told, of who wants something: `trl 0.9`, `trl==0.9`, `you`."""
    return re.split(r"==| v?", who, maxsplit=1)


def _none_offered(name: str, wishes: Sequence[Symptom]) -> Finding:
    """Return what is wrong where releases of one package want the same, and an installer takes none."""
    return Finding(
        id="PIP-NONE-OFFERED",
        severity=Severity.ERROR,
        summary=f"no release of {name} is offered for this Python version and platform: every release of"
        f" {_asking(wishes[0])} that was tried wants {name}, and none could be had",
        cause=f"The wishes do not exclude one another. Where {name} has no wheel for this Python (too new, or"
        " of 32 bits), this platform or on this index, an installer goes through all that want it.",
        evidence=tuple(Evidence(s.id, s.text, s.source) for s in wishes[:SHOWN]),
        remedies=(
            Remedy(
                f"Make a new environment of a Python for which {name} has wheels.",
                ("uv venv --python 3.11",),
            ),
            Remedy(
                f"Install {name} first, to see why none is.", (*pip_install(name, options="-v"), "python -VV")
            ),
        ),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=tuple(dict.fromkeys([*(s.id for s in wishes), "SYM-PIP-CONFLICT"])),
        prior=0.75,
    )


def _excluding(view: View, name: str, wishes: Sequence[Symptom]) -> Sequence[Symptom]:
    """Return the wishes that exclude one another; none where a known release suits all."""
    package = package_facts(view, name)
    known = package.versions if package else []
    sets = [SpecifierSet(_specifier(wish), prereleases=True) for wish in wishes]
    named = [clause.version for told in sets for clause in told if clause.operator in ("==", ">=", "<=")]
    releases = [*known, *(version for version in named if parse_version(version))]
    taken = [{release for release in releases if told.contains(release)} for told in sets]
    if len({str(told) for told in sets}) < 2 or set.intersection(*taken):
        return ()
    at_odds = [
        wish for wish, own in zip(wishes, taken, strict=True) if not all(own & other for other in taken)
    ]
    return at_odds or wishes


def _specifier(symptom: Symptom) -> str:
    return specifier_in(symptom.captured["spec"].replace(" and ", ","))


def _who(symptom: Symptom) -> str:
    return symptom.captured.get("who") or "you"


def _finding(view: View, name: str, wishes: Sequence[Symptom]) -> Finding:
    told = dict.fromkeys(
        f"{_who(s)} {'want' if 'who' not in s.captured else 'wants'} {_specifier(s)}" for s in wishes
    )
    split = captured(symptoms(view, "SYM-UV-SPLIT"), "split")
    parts = _parts(view)
    for_uv = [*_of_parts(parts), *_of_split(split or "")]
    return Finding(
        id="PIP-CLASH",
        severity=Severity.ERROR,
        summary=f"{name} is asked for twice in ways that exclude one another: {', '.join([*told][:SHOWN])}",
        cause="Each release states what it needs of others; an installer finds no release that suits both."
        + (f" uv locks for all at once, and this part has no solution: {split}." if split else "")
        + (f" Locked together: {', '.join(parts)}." if len(parts) > 1 else ""),
        evidence=tuple(Evidence(s.id, s.text, s.source) for s in wishes[:SHOWN]),
        remedies=(
            *for_uv,
            *_remedies(view, name, wishes, locked=bool(split or parts or _of_project(wishes))),
        ),
        certainty=Certainty.LIKELY,
        sources=(SOURCE, UV_SOURCE) if for_uv else (SOURCE,),
        explains=tuple(dict.fromkeys([*(s.id for s in wishes), "SYM-PIP-CONFLICT"])),
        prior=0.85,
    )


def _parts(view: View) -> dict[str, Symptom]:
    """Return the extras and groups that uv names, by the project and the part: `app[train]`, `app:dev`."""
    told = symptoms(view, "SYM-UV-PART")
    return {_part(s.captured): s for s in told}


def _part(told: Mapping[str, str]) -> str:
    return f"{told['project']}[{told['extra']}]" if "extra" in told else f"{told['project']}:{told['group']}"


def _of_parts(parts: Mapping[str, Symptom]) -> Iterator[Remedy]:
    """Yield how extras or groups that clash are declared to be never installed together."""
    if len(parts) < 2 or len({s.captured["project"] for s in parts.values()}) > 1:
        return
    tables = (
        f'{{ extra = "{s.captured["extra"]}" }}'
        if "extra" in s.captured
        else f'{{ group = "{s.captured["group"]}" }}'
        for s in parts.values()
    )
    declared = f"conflicts = [[{', '.join(tables)}]]"
    yield Remedy(
        f"If {' and '.join(parts)} are never installed together, say so in pyproject.toml and lock again: "
        f"under [tool.uv], {declared}.",
        ("uv lock",),
    )


def _of_split(split: str) -> Iterator[Remedy]:
    """Yield how the part of the lock that has no solution is left out, by its markers."""
    if any(word in split for word in PLATFORMS) and "== 'linux'" not in split:
        yield Remedy(
            "If that platform is not needed, lock for those that are: under [tool.uv] in pyproject.toml, "
            "environments = [\"sys_platform == 'linux' and platform_machine == 'x86_64'\"].",
            ("uv lock",),
        )
    if "python_" in split:
        yield Remedy(
            "If those Pythons are not needed, narrow requires-python in pyproject.toml to the others.",
            ("uv lock",),
        )


def _of_project(wishes: Iterable[Symptom]) -> bool:
    return any(_who(s) in _OWN for s in wishes)


def _moved(view: View, name: str, asking: Mapping[str, str]) -> list[Remedy]:
    """Return what takes one of those who ask to its nearest release that all others' wishes admit."""
    found = []
    for who in asking:
        others = [SpecifierSet(spec, prereleases=True) for one, spec in asking.items() if one != who]
        package, version = _told(who)[0], _nearest(view, who, name, others)
        if others and version:
            pins = {normalise(package): f"=={version[1]}"}
            text = f"Take {package} {version[1]}, the nearest release whose {name} suits the others, too."
            found.append((version[0], Remedy(text, install_commands(pins), pins)))
    return [remedy for _, remedy in sorted(found, key=lambda one: one[0])]


def _nearest(view: View, who: str, name: str, others: Sequence[SpecifierSet]) -> tuple[int, str] | None:
    """Return the nearest release that goes with what others want, after the days that lie between."""
    package, wanted = package_facts(view, normalise(_told(who)[0])), package_facts(view, name)
    if package is None or wanted is None or not wanted.crawled:
        return None
    suiting = sum(
        1 << place
        for place, version in enumerate(wanted.versions)
        if wanted.finals >> place & 1 and all(told.contains(version) for told in others)
    )
    here = place_of(package, _told(who)[-1])
    day = package.days[-1 if here is None else here]
    found = [
        (abs(package.days[place] - day), version)
        for place, version in enumerate(package.versions)
        if package.finals >> place & 1 and place != here and (row := package.row_of(place)) >= 0
        if all(wanted.spec_mask(one.spec) & suiting for one in package.requirements(row) if one.name == name)
    ]
    return min(found, key=lambda one: one[0], default=None)


def _remedies(view: View, name: str, wishes: Sequence[Symptom], locked: bool) -> Iterator[Remedy]:
    """Yield who moves, and whose wish to give way to; where a project is `locked`, its own files change."""
    asking = {_who(s): _specifier(s) for s in wishes if "who" in s.captured}
    if not locked:
        yield from _moved(view, name, asking)
    for who, specifier in [*asking.items()][:SHOWN]:
        pins = {name: specifier}
        text = f"Give way to {who}: {name}{specifier}."
        if locked:
            yield Remedy(f"{text} Change the other wish in pyproject.toml.", ("uv lock",))
        else:
            yield Remedy(text, install_commands(pins), pins)
    owners = " or ".join(dict.fromkeys(_told(who)[0] for who in asking if who not in _OWN))
    yield Remedy(
        f"Or another release of {owners}, which takes the other {name}: let it be computed."
        if owners
        else f"Or drop the wish for {name}.",
        ("envdoctor pin -r requirements.txt",),
    )
    if locked:
        over = f'override-dependencies = ["{name}…"] under [tool.uv] puts one release in its place.'
        yield Remedy(f"Where the bound is known to be too strict, {over}", ("uv lock",))
        return
    yield Remedy(f"Where the bound is known to be too strict, install {owners or name} with --no-deps.")


RULES = (Rule("PIP-CLASH", "an installer's message names no wishes that exclude one another", check_clashes),)
