"""The versions that an answer is for: stated, of facts, or of the examined environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from envdoctor.errors import InputError, Unavailable
from envdoctor.facts.names import normalise
from envdoctor.values import dataclass

if TYPE_CHECKING:
    from envdoctor.facts import Facts


@dataclass(frozen=True, slots=True)
class Stack:
    """The examined versions by normalized distribution name; `complete` when absence means not installed.

    `barred_by` has what bars these versions, too, if it bars their files (`python`, `platform`, `source`):
    nothing where they are installed for the very Python and platform that is answered for.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    barred_by: frozenset[str] = frozenset()

    def lacks(self, name: str) -> bool:
        """True when it is known not to be installed."""
        return self.complete and name not in self.versions

    def has(self, name: str) -> bool:
        """True when it is known to be installed."""
        return name in self.versions

    def within(self, name: str, specifier: str) -> bool | None:
        """Whether the version lies in the range; None when it is not known."""
        if name not in self.versions:
            return None
        from packaging.version import InvalidVersion, Version

        from envdoctor.specifiers import SpecifierSet  # dear to load

        try:
            return SpecifierSet(specifier).contains(Version(self.versions[name]), prereleases=True)
        except InvalidVersion:
            return None


def stack_of(facts: Facts) -> Stack:
    """Return the installed versions that facts tell; what only bounds are known of is left out.

    A torch that is told to be a CPU build is labelled as one, where other builds of its release exist.
    """
    environment = facts.environment
    versions = {normalise(name): d.version for name, d in environment.distributions.items() if d.version}
    build, torch = environment.builds.get("torch", {}), versions.get("torch")
    without = build.get("cuda", "") is None and build.get("variant") in (None, "cpu")
    if torch and without and "+" not in torch and facts.host.os.get() != "macos":
        versions["torch"] = f"{torch}+cpu"
    return Stack(versions, environment.complete)


def parse_stack(text: str) -> dict[str, str]:
    """Read `torch=2.9.1,trl=0.24`, also with `==`; raises InputError naming the part."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, version = part.partition("=")
        if not separator or not name.strip() or not version.strip("= "):
            raise InputError(f"--stack {part}: expected NAME=VERSION")
        found[normalise(name.strip())] = version.strip("= ")
    return found


def read_stack(python: str | None) -> Stack:
    """Return what is installed in an environment (None: the one that is active), by its folders' names.

    Raises InputError when the named interpreter is none, Unavailable when its folders cannot be listed.
    """
    from envdoctor.probes.files import Unreadable, list_names

    found: dict[str, str] = {}
    try:
        entries = [entry for site in reversed(find_sites(python)[1]) for entry in list_names(site)]
    except Unreadable as error:
        raise Unavailable(f"--python: {error}") from None
    for entry in entries:
        name, _, version = entry.removesuffix(".dist-info").partition("-")
        if entry.endswith(".dist-info"):
            found[normalise(name)] = version
    return Stack(found)


def find_sites(python: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the examined interpreter and the folders of its packages; raises as `read_stack` does."""
    from envdoctor.probes import NoInterpreter, NotKnown
    from envdoctor.probes.interpreter import find_interpreter
    from envdoctor.probes.machine import Machine

    try:
        found = find_interpreter(Machine(python=python))
    except NoInterpreter as error:
        raise InputError(f"--python: {error}") from None
    except NotKnown as error:
        raise Unavailable(f"--python: {error}") from None
    return found.executable, tuple(found.sites)


def active_python() -> str:
    """Return the interpreter of the active virtual or conda environment, else our own."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = os.path.join(os.environ.get(name, ""), "bin", "python")
        if os.environ.get(name) and os.access(python, os.X_OK):
            return python
    return sys.executable
