"""What pins that are built from source must see while they are built, though their builds do not ask for it.

In an isolated build is what its `pyproject.toml` asks for (else setuptools), and nothing of the environment.
What a `setup.py` imports beside that is not there: torch, or what the newest setuptools has no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from envdoctor.errors import EnvdoctorError
from envdoctor.facts.names import normalise
from envdoctor.harvest.module_reader import ModuleReader
from envdoctor.harvest.release_modules import ReleaseModules
from envdoctor.matrix import Matrix
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.standard_modules import is_in_python
from envdoctor.solve.answer import PinSet
from envdoctor.solve.goal import Goal
from envdoctor.solve.reasons import Pin
from envdoctor.solve.requests import parse_request
from envdoctor.upgrading.needing import last_with

SETUP, SETUPTOOLS = "setup", "setuptools"
_SHIMS = frozenset(("setuptools", "distutils", "_distutils_hack"))
"""What setuptools itself brings of whatever release."""


def with_builds(goal: Goal, answer: PinSet, matrix: Matrix) -> PinSet:
    """Return an answer whose pins tell what their builds must see, as far as these can be read."""
    built = [pin for pin in answer.pins if pin.built_with == ()]
    if not built or goal.coverage is None:
        return answer
    try:
        with goal.coverage.modules() as reader:
            return _Builds(goal, answer, matrix, reader).told(built)
    except EnvdoctorError:
        return answer


@dataclass(frozen=True, slots=True)
class _Builds:
    goal: Goal
    answer: PinSet
    matrix: Matrix
    reader: ModuleReader

    def told(self, built: list[Pin]) -> PinSet:
        """Return the answer with what builds must see, and a note for each."""
        self.reader.open((pin.name, pin.version) for pin in built)
        self.reader.read({(pin.name, pin.version): [SETUP] for pin in built})
        found: dict[str, Pin] = {}
        notes = []
        for pin in built:
            release = self.reader.release(pin.name, pin.version)
            lacks = dict(self._lacks(release)) if release else {}
            if release and lacks:
                asked = (need for need in self._asked(release) if normalise(need) not in lacks.values())
                found[pin.name] = replace(pin, built_with=tuple(dict.fromkeys((*lacks.values(), *asked))))
                told = ", ".join(f"{root} ({need})" for root, need in lacks.items())
                notes.append(
                    f"{pin.name} {pin.version} is built from source, and its setup imports what an isolated "
                    f"build does not have: {told}"
                )
        pins = tuple(found.get(pin.name, pin) for pin in self.answer.pins)
        return replace(self.answer, pins=pins, notes=(*self.answer.notes, *notes))

    def _lacks(self, release: ReleaseModules) -> Iterator[tuple[str, str]]:
        """Yield what a setup imports that is not in its isolated build, with what brings it."""
        setup = release.told.get(SETUP)
        asked = {request.name for one in release.build_asks if (request := parse_request(one, "build"))}
        pinned = {pin.name for pin in self.answer.pins}
        minor = self.goal.context.target.python_minor
        for root in dict.fromkeys(one.module.partition(".")[0] for one in (setup.taken if setup else ())):
            if not root or root in release.tops or root in _SHIMS or is_in_python(self.matrix, root, minor):
                continue
            name = distribution_of(self.matrix, root)
            if name == SETUPTOOLS:
                yield from ((root, spec) for spec in self._setuptools_with(root, release))
            elif name in pinned and name not in asked:
                yield root, name

    def _setuptools_with(self, root: str, release: ReleaseModules) -> Iterator[str]:
        """Yield the setuptools that brings a module, where the one that a build gets does not."""
        node = self.goal.context.node(SETUPTOOLS)
        wanted = [one for text in release.build_asks if (one := parse_request(text, "build"))]
        left = node.allowed if node else 0
        for one in wanted if node else ():
            left &= node.admits(one.spec) if node and one.name == SETUPTOOLS else left
        if node is None or not left or self._brings(node.version(left.bit_length() - 1), root):
            return
        spec = last_with(node.package, lambda version: self._brings(version, root))
        if spec:
            yield f"{SETUPTOOLS}{spec}"

    def _brings(self, version: str, root: str) -> bool:
        release = self.reader.release(SETUPTOOLS, version)
        return release is None or root in release.tops

    def _asked(self, release: ReleaseModules) -> Iterator[str]:
        """Yield what a build asks for on the target, but for what every build has."""
        here = self.goal.context.environment
        for one in release.build_asks:
            request = parse_request(one, "build")
            if request and request.name not in (SETUPTOOLS, "wheel") and request.holds(here):
                yield f"{request.name}{request.spec}"
