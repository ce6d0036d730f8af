"""Which files of a package install on a target, and what bars the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from envdoctor.matrix.markers import clauses_hold
from envdoctor.matrix.snapshot import SDIST, File, Snapshot, parse_files
from envdoctor.solve.wheels import installs
from envdoctor.target.resolve import Target


class FileJudge:
    """Judges a snapshot's kinds of files, each once; what bars them is `python`, `platform` or `source`."""

    def __init__(self, snapshot: Snapshot, target: Target, allow_source: bool) -> None:
        self._snapshot, self._target, self._allow_source = snapshot, target, allow_source
        self._tags: dict[int, bool] = {}
        self._pythons: dict[int, bool] = {-1: True}
        self._sets: dict[str, str] = {}
        self._kinds: dict[str, str] = {}

    def judge(self, text: str) -> str:
        """Return what bars all files of a set, as the facts write it; "" where one installs."""
        known = self._sets.get(text)
        if known is None:
            known = self._sets[text] = self._judge_new(text.split())
        return known

    def _judge_new(self, texts: Iterable[str]) -> str:
        found = set()
        for text in texts:
            verdict = self._kinds.get(text)
            if verdict is None:
                verdict = self._kinds[text] = self.judge_kinds(parse_files(text))
            if not verdict:
                return ""
            found.add(verdict)
        return _worst(found)

    def judge_kinds(self, files: Iterable[File]) -> str:
        """Return what bars all of some files; "" where one installs."""
        found = set()
        for tag, python, _ in files:
            verdict = self._judge_file(tag, python)
            if not verdict:
                return ""
            found.add(verdict)
        return "" if "source" in found and self._allow_source else _worst(found)

    def _judge_file(self, tag: int, python: int) -> str:
        if not self._python_allows(python):
            return "python"
        return "source" if tag == SDIST else "" if self._tag_installs(tag) else "platform"

    def _tag_installs(self, tag: int) -> bool:
        known = self._tags.get(tag)
        if known is None:
            known = self._tags[tag] = installs(self._snapshot.tags[tag], self._target)
        return known

    def _python_allows(self, number: int) -> bool:
        """True when the snapshot's Requires-Python of that number admits the target's Python."""
        known = self._pythons.get(number)
        if known is None:
            clauses = self._snapshot.pythons[number][1]
            known = self._pythons[number] = clauses_hold(clauses, self._target.python)
        return known


def _worst(found: Collection[str]) -> str:
    """Return what bars files that are barred each by one of these: what would be mended most easily."""
    return next((what for what in ("source", "platform", "python") if what in found), "platform")
