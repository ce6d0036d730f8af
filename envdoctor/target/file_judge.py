"""Which files of a package install on a target, and what bars the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from envdoctor.matrix.markers import some_release_meets
from envdoctor.matrix.snapshot import SDIST, Package, Snapshot, groups_of, load_snapshot
from envdoctor.matrix.verdicts import Verdicts, bar_of, verdicts_of
from envdoctor.target.resolve import Target, target_of
from envdoctor.target.wheels import Wheels

if TYPE_CHECKING:
    from envdoctor.facts import Facts
    from envdoctor.matrix import Matrix

_SOURCE = str(SDIST)
PYTHONS = ((3, 11), (3, 12), (3, 10), (3, 13), (3, 9), (3, 14))
"""Which a text that tells no Python is taken to be of, where its releases install on several: most first."""


class FileJudge:
    """Judges a snapshot's sets of files, each once; what bars them is `python`, `platform` or `source`."""

    def __init__(self, snapshot: Snapshot, target: Target, allow_source: bool) -> None:
        self._snapshot, self.target, self._allow_source = snapshot, target, allow_source
        self._pythons = {-1: True}
        self._together: dict[int, str] = {}
        self._sets: dict[int, str] = {}
        self._bars: dict[tuple[str, int | None], list[tuple[str, int]]] = {}

    def judges_as(self, other: FileJudge) -> bool:
        """True when another judges the same facts for the same Python and platform."""
        ours, theirs = self.target, other.target
        same = (ours.python, ours.platform, self._allow_source)
        return self._snapshot is other._snapshot and same == (
            theirs.python,
            theirs.platform,
            other._allow_source,
        )

    def bars(self, package: Package, cutoff: int | None) -> list[tuple[str, int]]:
        """Return what bars releases of a package for their files, with which; as of a day, if one is told."""
        known = self._bars.get((package.name, cutoff))
        if known is None:
            masks = {"python": 0, "platform": 0, "source": 0}
            if cutoff is None:
                masks |= package.file_masks(self.judge)
            else:
                for mask, verdict in self._judged_by(package, cutoff):
                    masks[verdict] = masks.get(verdict, 0) | mask
            known = [(what, mask) for what, mask in masks.items() if what]
            self._bars[package.name, cutoff] = known
        return known

    def _judged_by(self, package: Package, cutoff: int) -> Iterator[tuple[int, str]]:
        """Yield versions with what bars those of their files that were there on the day of the cut-off."""
        for number, versions in package.file_masks(int).items():
            groups = [*groups_of(self._snapshot.tables["sets"][number])]
            for mask in _bits(versions) if any(late for _, _, late in groups) else (versions,):
                left = cutoff - package.days[mask.bit_length() - 1]
                yield mask, self._judge_groups(one for one in groups if not one[2] or one[2] <= left)

    def judge(self, number: int) -> str:
        """Return what bars all files of a set; "" where one installs."""
        known = self._sets.get(number)
        if known is None:
            known = self._verdicts.bar(number, self._allow_source)
            if known is None:
                known = self._judge_groups(groups_of(self._snapshot.tables["sets"][number]))
            self._sets[number] = known
        return known

    @cached_property
    def _verdicts(self) -> Verdicts:
        """What the facts say themselves of sets of files on the target."""
        platform, lines = self.target.platform, self._snapshot.tables["verdicts"]
        told = lines if platform.libc == "glibc" else ()
        return verdicts_of(told, platform.arch, self.target.python_minor, platform.libc_version)

    def _judge_groups(self, groups: Iterable[tuple[int, int, int]]) -> str:
        """Return what bars all files of some groups; "" where one installs."""
        barred = set[str]()
        for python, tags, _ in groups:
            if not self._allows(python):
                barred.add("python")
                continue
            verdict = self._together.get(tags)
            if verdict is None:
                verdict = self._together[tags] = self._judge_tags(tags)
            if not verdict:
                return ""
            barred.add(verdict)
        return bar_of(barred)

    def _allows(self, python: int) -> bool:
        known = self._pythons.get(python)
        if known is None:
            _, clauses = self._snapshot.python(python)
            known = self._pythons[python] = some_release_meets(clauses, self.target.python)
        return known

    def _judge_tags(self, number: int) -> str:
        """Return what bars files of tags that stand together."""
        tags = self._snapshot.tables["together"][number].split(",")
        if not self._installing.isdisjoint(tags):
            return ""
        return "source" if _SOURCE in tags else "platform"

    @cached_property
    def _installing(self) -> set[str]:
        """The tags that install: all are judged at once, as they share their parts."""
        wheels = Wheels(self.target)
        found = {str(n) for n, tag in enumerate(self._snapshot.tags) if wheels.install(tag)}
        return {*found, _SOURCE} if self._allow_source else found


def supposed_target(facts: Facts, matrix: Matrix) -> Target:
    """Return the target that facts describe, with the Python that their releases are for if none is told."""
    target = target_of(facts, matrix)
    if facts.environment.python.get():
        return target
    snapshot = load_snapshot(matrix.folder)
    told = ((snapshot.package(name), version) for name, version in target.stack.versions.items())
    known = ((package, version.partition("+")[0]) for package, version in told if package)
    places = ((package, package.position.get(version)) for package, version in known)
    sets = [package.set_of(place) for package, place in places if place is not None]

    def barred(python: tuple[int, ...]) -> int:
        judge = FileJudge(snapshot, replace(target, python=python), False)
        return sum(bool(judge.judge(number)) for number in sets)

    python = next((one for one in PYTHONS if not barred(one)), None)
    return replace(target, python=python or min(PYTHONS, key=barred))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit
