"""A remedy's pins, held to what the packages that stay ask for as well, and to the torch that stays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import ANY, install_commands, words_of
from envdoctor.facts import Facts, Observed
from envdoctor.facts.names import NOT_PACKAGES, normalise
from envdoctor.findings import Remedy
from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.rules.calendar import finals, package_facts
from envdoctor.rules.conditions import judge
from envdoctor.rules.pairs import pairs_of
from envdoctor.rules.ranges import parse_specifier, parse_version
from envdoctor.rules.requirements import Asked
from envdoctor.rules.variant_index import variants_of
from envdoctor.rules.view import View
from envdoctor.values import replace

_ASKS_FOR_THE_NEWEST = ("-U", "--upgrade")
_TORCH = "torch"
_VARIANT_INDEX = re.compile(
    r"^pip install .*\btorch(?= |$).*--index-url https://download\.pytorch\.org/whl/(cu\d{3})$"
)
"""A command that takes torch from the index of one CUDA."""
_RELEASE = re.compile(r"\b\d{1,4}(?:\.\d{1,4}){1,3}\b")
_OLD_PYTHON = "3.9.0"
"""A Python that is still met where none is told: what does not run on it may not be the nearest release."""
_LOWEST = re.compile(r">=\s*(\d[\w.]*)")
_ANY = (ANY, ">=0")
"""Pins that leave the release open."""


def is_plain(remedy: Remedy) -> bool:
    """True where its command, if any, does no more than have pip put in what its pins name."""
    asked = map(_words, install_commands(remedy.pins))
    return bool(remedy.pins) and list(map(_words, remedy.commands)) == list(asked)


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(word for word in words_of(line) if word not in _ASKS_FOR_THE_NEWEST)
    except ValueError:
        return (line,)


class Neighbours:
    """What the listed packages ask of one another."""

    def __init__(self, facts: Facts, matrix: Matrix) -> None:
        self._view = View(facts, matrix)

    @cached_property
    def _asked(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """By the name of what is asked for: who asks, and for which versions of it."""
        found: dict[str, list[tuple[str, str]]] = {}
        for owner, demands in Asked.of(self._view).demands.items():
            for one in demands:
                if one.specifier:
                    found.setdefault(one.name, []).append((owner, one.specifier))
        return {name: tuple(dict.fromkeys(asking)) for name, asking in found.items()}

    def narrowed(self, remedy: Remedy) -> Remedy:
        """Return a plain remedy whose pins leave out what a package that stays does not take.

        What nothing in its range suits moves along with it, and is left to the solver.
        """
        remedy = self._of_torch(self._of_the_same_release(remedy))
        if not is_plain(remedy):
            return remedy
        pins = {name: self._narrowed(name, spec, remedy.pins) for name, spec in remedy.pins.items()}
        if pins == remedy.pins:
            return remedy
        return replace(remedy, text=_as_narrowed(remedy, pins), pins=pins, commands=install_commands(pins))

    def _of_the_same_release(self, remedy: Remedy) -> Remedy:
        """Return a remedy that takes another CUDA variant of torch in the release that stands there.

        An index of PyTorch's gives the newest that it has to who names none.
        """
        version = self._view.version(_TORCH)
        if version is None or version.is_prerelease or _TORCH in remedy.pins:
            return remedy
        rows = self._view.companions.items()
        pins = {name: pin for name, row in rows if row.of_torch and (pin := self._pair(name))}
        lines = tuple(self._same_release(line, version, pins) for line in remedy.commands)
        if lines == remedy.commands:
            return remedy
        return replace(remedy, commands=lines, pins={**remedy.pins, _TORCH: f"=={version.public}"})

    def _same_release(self, line: str, version: Version, pins: Mapping[str, str]) -> str:
        match = _VARIANT_INDEX.search(line)
        if match is None or match[1] not in variants_of(self._view, version):
            return line
        return _pinned(line, {**pins, _TORCH: f"=={version.public}+{match[1]}"})

    def _of_torch(self, remedy: Remedy) -> Remedy:
        """Return a remedy that names the release of what is built for one torch, where that torch stays.

        A plain `pip install xformers` brings the newest, and its torch.
        """
        lines = [line for line in remedy.commands if line.startswith("pip install ") and " --" not in line]
        told = {word for line in lines for word in _words(line)}
        if any(word == "torch" or word.startswith("torch=") for word in told):
            return remedy
        moving = [name for name, row in self._view.companions.items() if row.moves_torch]
        bare = [name for name in moving if name in told and remedy.pins.get(name, ANY) in _ANY]
        bare += [name for name in moving if remedy.pins.get(name) in _ANY and name not in bare]
        fitting = {name: pin for name in bare if (pin := self._pair(name))}
        if not fitting:
            return remedy
        pins = {**remedy.pins, **fitting}
        if is_plain(remedy):
            return replace(remedy, commands=install_commands(pins), pins=pins)
        commands = tuple(_pinned(line, fitting) if line in lines else line for line in remedy.commands)
        return replace(remedy, commands=commands, pins=pins)

    def _pair(self, name: str) -> str:
        """Return the releases of a package that are built for the torch that is told; empty where unknown."""
        view = self._view
        told = view.version("torch")
        pairs = pairs_of(view.matrix, name) if told and not told.is_prerelease else ()
        return next((p.versions for p in reversed(pairs) if judge(view, "torch", p.torch).holds), "")

    def _narrowed(self, name: str, specifier: str, pins: Mapping[str, str]) -> str:
        asking = () if name in NOT_PACKAGES else self._asked.get(normalise(name), ())
        if not asking:
            return specifier
        left = _taken(specifier, [v for v, _ in finals(self._view, normalise(name))])
        for asked in [asked for owner, asked in asking if owner not in pins]:
            held = _taken(asked, left)
            if held and held != left:
                left, specifier = held, merged(specifier, asked)
        return specifier

    def nearest(self, remedy: Remedy, versions: Mapping[str, str]) -> Remedy:
        """Return a plain remedy that names the release it goes back to, or the patches that a line got.

        What broke is named by its first release; of those before, the last one has changed the least.
        A line's first release is the one that its patches mend.
        """
        if not is_plain(remedy):
            return remedy
        pins = {name: self._nearest(name, spec, versions.get(name)) for name, spec in remedy.pins.items()}
        return replace(remedy, pins=pins, commands=install_commands(pins)) if pins != remedy.pins else remedy

    def _nearest(self, name: str, specifier: str, version: str | None) -> str:
        if version is None or name in NOT_PACKAGES:
            return specifier
        if "<" in specifier and "=" not in specifier.replace(">=", "").replace("<=", ""):  # it goes back
            return f"=={Version(version).public}" if self._suits(name, version) else specifier
        return self._with_its_patches(name, specifier, Version(version))

    def _with_its_patches(self, name: str, specifier: str, version: Version) -> str:
        """Return a lower bound raised to the last patch of the line that it begins with."""
        match = _LOWEST.search(specifier)
        line = Version(match[1]).release[:2] if match else (0, 0)
        if line == (0, 0) or len(line) == 1:  # 0.0.22 and 0.0.23 are lines of their own; 2 is no line
            return specifier
        releases = map(Version, _taken(specifier, [v for v, _ in finals(self._view, normalise(name))]))
        last = max((v for v in releases if v.release[:2] == line and v <= version), default=None)
        return merged(specifier, f">={last}") if last and self._suits(name, str(last)) else specifier

    def _suits(self, name: str, version: str) -> bool:
        """True where a release installs on the Python that is told; on an old one as well, where none is."""
        if isinstance(self._view.facts.environment.python, Observed):
            return True
        package = package_facts(self._view, normalise(name))
        place = package.position.get(version) if package else None
        if package is None or place is None:
            return False
        snapshot = load_snapshot(self._view.matrix.folder)
        asked = (
            snapshot.python(f.python)[0] if f.python >= 0 else ""
            for f in package.files(package.set_of(place))
        )
        return any(parse_specifier(text).contains(_OLD_PYTHON) for text in asked)


def _as_narrowed(remedy: Remedy, pins: Mapping[str, str]) -> str:
    """Return a remedy's words; where they name a release that is left out now, with those that are left."""
    named = _RELEASE.findall(remedy.text)
    left = [
        f"{name} {pin}"
        for name, pin in pins.items()
        if any(one in _taken(remedy.pins[name], named) and one not in _taken(pin, named) for one in named)
    ]
    return f"{remedy.text} The packages that stay here allow {', '.join(left)}." if left else remedy.text


def _pinned(line: str, pins: Mapping[str, str]) -> str:
    return " ".join(f'"{word}{pins[word]}"' if word in pins else word for word in line.split(" "))


def _taken(specifier: str, versions: list[str]) -> list[str]:
    if specifier == ANY or not versions:
        return versions
    return list(filter(parse_specifier(specifier).contains, versions))


def merged(one: str, other: str) -> str:
    """Return one specifier for both, without the bounds that another of them makes needless."""
    clauses = [c for c in dict.fromkeys((*one.split(","), *other.split(","))) if c.strip() not in ("", ANY)]
    exact = [c for c in clauses if c.startswith("==") and not c.endswith("*")]
    if exact:
        return exact[0].strip()
    lowest = [c for c in clauses if c.strip().startswith(">")]
    highest = [c for c in clauses if c.strip().startswith("<")]
    rest = [c.strip() for c in clauses if c not in lowest and c not in highest]
    least = max(lowest, key=_bound, default="").strip()
    most = min(highest, key=_bound, default="").strip()
    if least.startswith(">=") and most.startswith("<=") and _bound(least)[0] == _bound(most)[0]:
        return f"=={least[2:].strip()}"
    return ",".join(filter(None, (least, most, *rest)))


def _bound(clause: str) -> tuple[object, bool]:
    version = parse_version(clause.strip().lstrip("<>=").strip())
    strict = "=" not in clause
    return version, strict if clause.strip().startswith(">") else not strict
