"""What to type where conda, or one of its kin, put a package into an environment."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import Environment
from envdoctor.values import NamedTuple

_PIXI = "/.pixi/envs/"


def is_condas(environment: Environment, name: str) -> bool:
    """True for what conda installed into an environment of its own; what pip put there stays pip's."""
    one = environment.distributions.get(name)
    return environment.kind.get() == "conda" and one is not None and one.origin == "conda"


def is_pixis(prefix: str) -> bool:
    """True for an environment that pixi makes from a project's manifest, told by its place."""
    return _PIXI in prefix + "/"


def conda_name(name: str) -> str:
    """Return what conda calls a distribution."""
    return "pytorch" if name == "torch" else name


class Manager(NamedTuple):
    """The tool that made an environment, and the calls by which it changes it.

    What depends on a package that goes is not to go with it: `remove --force`.
    """

    install: str
    again: str
    remove: str
    words: tuple[str, ...]
    """What the calls name before the packages: the environment's place."""

    def lines(self, comes: Sequence[str], again: Sequence[str], goes: Sequence[str]) -> tuple[str, ...]:
        """Return what to type; nothing for what is not asked."""
        asked = ((self.remove, goes), (self.install, comes), (self.again, again))
        return tuple(line for call, names in asked if names for line in self._call(call, names))

    def _call(self, call: str, names: Sequence[str]) -> tuple[str, ...]:
        return commands(call + " {}" * len(names), *self.words, *names)


def manager_of(prefix: str) -> Manager:
    """Return the tool that made an environment, told by its place."""
    if is_pixis(prefix):
        project, _, name = prefix.partition(_PIXI)
        feature = () if name.strip("/") == "default" else (name.strip("/"),)
        place, option = " --manifest-path {}", " --feature {}" * len(feature)
        of_environment = place + " --environment {}" * len(feature)
        calls = (
            "pixi add" + place + option,
            "pixi reinstall" + of_environment,
            "pixi remove" + place + option,
        )
        return Manager(*calls, (project, *feature))
    kin = "micromamba" if "micromamba" in prefix else "mamba" if re.search("mamba|miniforge", prefix) else ""
    tool = kin or "conda"
    return Manager(
        f"{tool} install -p {{}}",
        f"{tool} install --force-reinstall -p {{}}",
        f"{tool} remove --force -p {{}}",
        (prefix,),
    )
