"""Which files of a package install on a target, and what bars the others."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from envdoctor.matrix.markers import clauses_hold
from envdoctor.matrix.snapshot import SDIST, Package, Snapshot
from envdoctor.solve.wheels import Wheels
from envdoctor.target.resolve import Target


class FileJudge:
    """Judges a snapshot's kinds of files, each once; what bars them is `python`, `platform` or `source`."""

    def __init__(self, snapshot: Snapshot, target: Target, allow_source: bool) -> None:
        self._snapshot, self._target, self._allow_source = snapshot, target, allow_source
        self._wheels = Wheels(target)
        self._tags = {str(SDIST): "" if allow_source else "source"}
        self._pythons = {"-1": True}
        self._sets: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._installing: set[str] = set()
        """The kinds known to install."""
        self._bars: dict[tuple[str, int | None], list[tuple[str, int]]] = {}

    def judges_as(self, other: FileJudge) -> bool:
        """True when another judges the same facts for the same Python and platform."""
        ours, theirs = self._target, other._target
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
                masks |= package.file_masks([self.judge(text) for text in package.file_sets])
            else:
                for mask, verdict in self._judged_by(package, cutoff):
                    masks[verdict] = masks.get(verdict, 0) | mask
            known = [(what, mask) for what, mask in masks.items() if what]
            self._bars[package.name, cutoff] = known
        return known

    def _judged_by(self, package: Package, cutoff: int) -> Iterator[tuple[int, str]]:
        """Yield versions with what bars those of their files that were there on the day of the cut-off."""
        for text, versions in package.file_masks(package.file_sets).items():
            late = {kind: int(kind.split(",")[2]) for kind in text.split() if kind.count(",") == 2}
            for mask in _bits(versions) if late else (versions,):
                left = cutoff - package.days[mask.bit_length() - 1]
                there = [kind for kind in text.split() if late.get(kind, left) <= left]
                yield mask, self.judge_kinds(there)

    def judge(self, text: str) -> str:
        """Return what bars all files of a set, as the facts write it; "" where one installs."""
        known = self._sets.get(text)
        if known is None:
            known = self._sets[text] = self.judge_kinds(text.split())
        return known

    def judge_kinds(self, kinds: Collection[str]) -> str:
        """Return what bars all files of some kinds, as the facts write them; "" where one installs."""
        if not self._installing.isdisjoint(kinds):
            return ""
        known, barred = self._kinds, set[str]()
        for kind in kinds:
            verdict = known.get(kind)
            if verdict is None:
                verdict = known[kind] = self._judge_kind(kind)
            if not verdict:
                self._installing.add(kind)
                return ""
            barred.add(verdict)
        return _worst(barred)

    def _judge_kind(self, text: str) -> str:
        tag, _, rest = text.partition(",")
        python = rest.partition(",")[0]
        allows = self._pythons.get(python)
        if allows is None:
            clauses = self._snapshot.pythons[int(python)][1]
            allows = self._pythons[python] = clauses_hold(clauses, self._target.python)
        if not allows:
            return "python"
        verdict = self._tags.get(tag)
        if verdict is None:
            fits = self._wheels.install(self._snapshot.tags[int(tag)])
            verdict = self._tags[tag] = "" if fits else "platform"
        return verdict


def _worst(found: Collection[str]) -> str:
    """Return what bars files that are barred each by one of these: what would be mended most easily."""
    return next((what for what in ("source", "platform", "python") if what in found), "platform")


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit
