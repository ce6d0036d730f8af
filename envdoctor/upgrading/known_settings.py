"""What the releases of frameworks tell of their settings, and which of them end with a move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from envdoctor.matrix import Matrix
from envdoctor.matrix.interface_records import Record, ancestors, load_record
from envdoctor.profile.keys import KeyFacts, key_facts
from envdoctor.upgrading.arguments import stood_on
from envdoctor.upgrading.gone import Move


class KnownSettings:
    """The settings of frameworks, each framework's read once."""

    def __init__(self, matrix: Matrix, moves: Mapping[str, Move]) -> None:
        self._matrix, self._moves = matrix, moves
        self._known: dict[str, KeyFacts | None] = {}
        self._ended: dict[str, frozenset[str]] = {}

    def of(self, library: str) -> KeyFacts | None:
        """Return what a framework's releases tell of its settings."""
        if library not in self._known:
            self._known[library] = key_facts(self._matrix, library)
        return self._known[library]

    def ended(self, library: str) -> Collection[str]:
        """Return the settings that end with a framework's move, for any of its trainers."""
        facts, move = self.of(library), self._moves[library]
        if library not in self._ended and facts:
            every = (facts, *(replace(facts, fields=fields) for fields in facts.trainers.values()))
            gone = (
                (key, one) for one in every for key in one.fields if one.gone_since(key, move.new, move.old)
            )
            self._ended[library] = frozenset(key for key, _ in gone)
        return self._ended.get(library, ())

    def gone(self, library: str, name: str, move: Move) -> str | None:
        """Return since when a setting is gone that a framework's class hands on; empty where it stands.

        None for what is none of the framework's settings.
        """
        facts = self.of(library)
        if facts is None or name not in facts.fields:
            return None
        return "" if self.is_inherited(library, name) else facts.gone_since(name, move.new, move.old)

    def launches(self, library: str) -> tuple[str, ...]:
        """Return words of which one is in a command whose options are the library's settings."""
        row = self._matrix.frameworks.get(library)
        return row.launches if row else ()

    def is_inherited(self, library: str, name: str) -> bool:
        """True for a setting of a framework's class that the framework it stands on has today."""
        bases = (self.of(base) for base in self._matrix.frameworks.with_bases(library)[1:])
        return any(facts.has(name) is True for facts in bases if facts)

    def is_own(self, record: Record, owner: str, name: str, library_of: Callable[[str], str]) -> bool:
        """True for an argument that settings that stand on another library's class have of their own."""
        others = [
            (load_record(self._matrix.folder, library_of(module)), classes)
            for module, classes in stood_on(record).items()
        ]
        own = (f"{one}.__init__" for one in ancestors(record.bases, owner.partition(".")[0]))
        given = [record.keywords.get(one, {}) for one in own]
        given += [o.keywords.get(f"{one}.__init__", {}) for o, classes in others if o for one in classes]
        return bool(others) and all(o for o, _ in others) and not any(name in told for told in given)
