"""Which files of a package install on a target, and what bars the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from envdoctor.matrix.markers import clauses_hold
from envdoctor.matrix.snapshot import SDIST, Snapshot
from envdoctor.solve.wheels import Wheels
from envdoctor.target.resolve import Target


class FileJudge:
    """Judges a snapshot's kinds of files, each once; what bars them is `python`, `platform` or `source`."""

    def __init__(self, snapshot: Snapshot, target: Target, allow_source: bool) -> None:
        self._snapshot, self._target = snapshot, target
        self._wheels = Wheels(target)
        self._tags = {str(SDIST): "" if allow_source else "source"}
        self._pythons = {"-1": True}
        self._sets: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._fitting: set[str] = set()
        """The kinds of `_kinds` that install."""

    def judge(self, text: str) -> str:
        """Return what bars all files of a set, as the facts write it; "" where one installs."""
        known = self._sets.get(text)
        if known is None:
            known = self._sets[text] = self.judge_kinds(text.split())
        return known

    def judge_kinds(self, kinds: Iterable[str]) -> str:
        """Return what bars all files of some kinds, as the facts write them; "" where one installs."""
        kinds = list(kinds)
        if not self._fitting.isdisjoint(kinds):
            return ""
        for kind in (kind for kind in kinds if kind not in self._kinds):
            self._kinds[kind] = self._judge_kind(kind)
            if not self._kinds[kind]:
                self._fitting.add(kind)
                return ""
        return _worst(set(map(self._kinds.__getitem__, kinds)))

    def _judge_kind(self, text: str) -> str:
        tag, python, *_ = text.split(",")
        if not self._python_allows(python):
            return "python"
        verdict = self._tags.get(tag)
        if verdict is None:
            fits = self._wheels.install(self._snapshot.tags[int(tag)])
            verdict = self._tags[tag] = "" if fits else "platform"
        return verdict

    def _python_allows(self, number: str) -> bool:
        """True when the snapshot's Requires-Python of that number admits the target's Python."""
        known = self._pythons.get(number)
        if known is None:
            clauses = self._snapshot.pythons[int(number)][1]
            known = self._pythons[number] = clauses_hold(clauses, self._target.python)
        return known


def _worst(found: Collection[str]) -> str:
    """Return what bars files that are barred each by one of these: what would be mended most easily."""
    return next((what for what in ("source", "platform", "python") if what in found), "platform")
