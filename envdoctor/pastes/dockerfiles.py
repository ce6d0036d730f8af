"""A Dockerfile as facts: the image that it begins with, then its steps in order; the last word counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from envdoctor import lazy_re as re
from envdoctor.errors import InputError
from envdoctor.facts import Setting
from envdoctor.facts.names import normalise
from envdoctor.images.dockerfile import INSTRUCTIONS, Instruction, last_stage
from envdoctor.images.recipe import Install, Recipe, allowed_variables, read_recipe
from envdoctor.inputs import read_input_text
from envdoctor.matrix.torch_wheels import COMPANIONS
from envdoctor.pastes.distributions import Told, parse_told
from envdoctor.pastes.platforms import parse_container
from envdoctor.pastes.sightings import Paste, Sighting, build_sighting, told_sightings
from envdoctor.values import dataclass

_WANTED = re.compile(
    r"([A-Za-z0-9][\w.-]{0,100})(?:\[[\w,. -]{0,80}\])?\s*((?:[<>=!~]=?=?\s*[\w.*+!]{1,60}\s*,?\s*){0,8})"
    r"(?:\s*;.{0,300})?"
)
_DIRECT = re.compile(r"(?:([A-Za-z0-9][\w.-]{0,100})(?:\[[^\]]{0,80}\])?\s*@\s*)?((?:git\+)?https?://\S+)")
_WHEEL = re.compile(r"/([A-Za-z0-9][\w.]{0,100})-(\d[\w.+%]{0,60})-[\w.]+-[\w.]+-[\w.]+\.whl")
_VARIANT = re.compile(r"/whl/(?:nightly/)?(cu\d{3}|cpu|rocm[\d.]+|xpu)")
_FOLLOWED = ("FROM", "ARG", "ENV", "RUN", "COPY", "ADD")
LISTED = 2000
"""Lines of a file of requirements that are read."""


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Places (from 0) of a Dockerfile's own lines: what an error is called there happened to nobody."""

    remarks: frozenset[int]
    instructions: frozenset[int]


def own_lines(lines: Sequence[str], steps: Sequence[Instruction]) -> OwnLines:
    """Return which lines are a Dockerfile's; none of a text without FROM."""
    own = [one for one in steps if one.word in INSTRUCTIONS]
    if not any(one.word == "FROM" for one in own):
        return OwnLines(frozenset(), frozenset())
    remarks = frozenset(index for index, line in enumerate(lines) if line.lstrip().startswith("#"))
    inside = (index for one in own for index in range(one.line - 1, one.last))
    return OwnLines(remarks, frozenset(inside) - remarks)


def parse_dockerfile(paste: Paste, steps: Sequence[Instruction]) -> Iterator[Sighting]:
    """Yield what a Dockerfile leads to; files of requirements are looked for in its folder."""
    built = last_stage(steps)
    if built is None:
        return
    for step in steps:
        if step.word in _FOLLOWED:
            paste.claimed.update(range(step.line - 1, step.last))
    yield from _Reader(read_recipe(built), paste).sightings()


class _Reader:
    def __init__(self, recipe: Recipe, paste: Paste) -> None:
        self._recipe, self._paste = recipe, paste
        self._found: dict[str, list[Sighting]] = {}
        self._notes: list[str] = []

    def _at(self, line: int) -> str:
        return self._paste.at("Dockerfile", line - 1)

    def sightings(self) -> Iterator[Sighting]:
        """Yield what the image and each step tell; what a later step installs stands for what went before."""
        recipe = self._recipe
        if not (recipe.installs or recipe.flavour or recipe.variables):
            return  # of another image than a judgement is about
        of_image = list(parse_container(_whole_name(recipe.base), self._at(recipe.line)))
        for sighting in of_image:
            if sighting.place in ("distribution", "build"):
                self._keep(_name_of(sighting), [sighting])
            else:
                yield sighting
        yield Sighting("host.os", "linux", self._at(recipe.line))
        yield self._setting("image.base", recipe.base, recipe.line)
        if recipe.flavour:
            yield self._setting("image.flavour", recipe.flavour, recipe.line)
        if recipe.python:
            yield Sighting("environment.python", recipe.python[0], self._at(recipe.python[1]))
        for pair in allowed_variables({n: value for n, (value, _) in recipe.variables.items()}).items():
            yield Sighting("variable", pair)
        for install in recipe.installs:
            yield from self._follow(install)
        for found in self._found.values():
            yield from found
        yield from (Sighting("note", note) for note in (*recipe.notes, *self._notes))

    def _setting(self, key: str, value: str, line: int) -> Sighting:
        return Sighting("setting", Setting(key, value, self._at(line), key), self._at(line))

    def _keep(self, name: str, sightings: Iterable[Sighting], whole: bool = False) -> None:
        self._found[name] = [*sightings] if whole else [*self._found.get(name, ()), *sightings]

    def _follow(self, install: Install) -> Iterator[Sighting]:
        if install.tool == "uninstall":
            for word in install.wanted:
                self._found.pop(normalise(word), None)
            return
        if install.tool == "conda":
            self._conda(install)
            return
        lines = [(word, self._line_of(word, install), "") for word in install.wanted]
        for file in install.files:
            lines += self._listed(file, install.line)
        torch_there = "torch" in self._found
        for place, (word, line, within) in enumerate(lines):
            wanted = self._wanted(word, self._at(line) + within, install.index)
            if wanted:
                with_torch = any(re.match(r"torch\b(?!-)", other) for other, _, _ in lines[:place])
                told = [word, "isolated" if install.isolated else "", "torch" if torch_there else ""]
                told += ["torch beside it" if with_torch else "", _said(install.nvcc)]
                told += ["another toolkit" if install.another else ""]
                yield self._setting("image.install", " | ".join(filter(None, told)), line)

    def _line_of(self, word: str, install: Install) -> int:
        """Return the line of a step that a word stands on."""
        lines = range(install.line, max(install.line, install.last) + 1)
        return next((line for line in lines if word in self._paste.lines[line - 1]), install.line)

    def _listed(self, file: str, line: int) -> list[tuple[str, int, str]]:
        """Return the requirements of a file beside the Dockerfile, by its path or its mere name."""
        text = self._text(file)
        if text is None:
            self._notes.append(
                f"line {line}: {file} is not beside the Dockerfile: what it lists is not known"
            )
            return []
        listed = text.splitlines()[:LISTED]
        return [(n.partition(" #")[0].strip(), line, f" ({file}:{i})") for i, n in enumerate(listed, 1)]

    def _text(self, file: str) -> str | None:
        if self._paste.folder is None or "\0" in file or ".." in file.split("/"):
            return None
        for place in (self._paste.folder / file.lstrip("/"), self._paste.folder / Path(file).name):
            if os.path.isfile(place):
                try:
                    return read_input_text(place)
                except InputError:
                    return None
        return None

    def _wanted(self, word: str, source: str, index: str) -> str:
        """Keep what one requirement tells; return its name, or nothing for a path or a variable."""
        if direct := _DIRECT.fullmatch(word):
            wheel = _WHEEL.search(direct[2])
            name = normalise(direct[1] or (wheel[1] if wheel else "") or _repository(direct[2]))
            version = wheel[2].replace("%2B", "+") if wheel else ""
            told = parse_told(version, exact=True) if version else Told()
            origin = "url" if wheel else "vcs"
            self._keep(name, told_sightings(name, told, source, origin=origin) if told else (), whole=True)
            return name
        match = _WANTED.fullmatch(word)
        if match is None:
            return ""
        name, told = normalise(match[1]), _told(match[2].strip())
        before = self._found.get(name)
        if before and (not match[2] or (told.version and told.version in map(_release_of, before))):
            return name  # pip leaves alone what is there
        told = _of_index(name, told, index)
        self._keep(name, told_sightings(name, told, source), whole=True)
        return name

    def _conda(self, install: Install) -> None:
        for word in install.wanted:
            match = re.fullmatch(r"(?:[\w-]+::)?([A-Za-z0-9][\w.-]*?)==?(\d[\w.]*)(?:=.*)?", word)
            if match is None or match[1] == "python":
                continue
            name = {"pytorch": "torch"}.get(match[1], normalise(match[1]))
            told = parse_told(match[2]) or Told()
            if name == "pytorch-cuda" or name == "cudatoolkit":
                self._keep("torch", [build_sighting("torch", {"cuda": match[2]}, self._at(install.line))])
            else:
                found = told_sightings(name, told, self._at(install.line), origin="conda")
                self._keep(name, found, whole=name != "torch")


def _told(specifier: str) -> Told:
    """Return what a specifier tells; one exact version is what will be there."""
    exact = re.fullmatch(r"===?\s*([^*,]+)", specifier)
    return parse_told(exact[1] if exact else specifier, exact=True) or Told()


def _said(nvcc: bool | None) -> str:
    return "" if nvcc is None else "nvcc" if nvcc else "no nvcc"


def _whole_name(image: str) -> str:
    return image if ":" in image.rpartition("/")[2] or not image else f"{image}:latest"


def _name_of(sighting: Sighting) -> str:
    value = sighting.value
    return str(value[0]) if isinstance(value, tuple) else str(value.name)


def _release_of(sighting: Sighting) -> str | None:
    """Return the release that a sighting tells, whichever build of it; a build alone tells none."""
    version = getattr(sighting.value, "version", None)
    return version and str(version).partition("+")[0]


def _repository(url: str) -> str:
    return re.split(r"[@#]", url.rstrip("/"))[0].rpartition("/")[2].removesuffix(".git") or "unnamed"


def _of_index(name: str, told: Told, index: str) -> Told:
    """Return a version of torch as the build that an index of PyTorch's gives."""
    variant = _VARIANT.search(index)
    if variant is None or name not in ("torch", *COMPANIONS) or told.build:
        return told
    if told.version and "+" not in told.version:
        return parse_told(f"{told.version}+{variant[1]}", exact=True) or told
    return Told(told.version, told.specifier, (parse_told(f"0+{variant[1]}", exact=True) or told).build)
