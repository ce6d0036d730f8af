"""What decides, before a condition row is read, whether it can speak: its id and the symptoms it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from envdoctor.patterns import glob_matches

CONDITIONS = "row"
"""The kind of the rows that have heads."""


class Head(NamedTuple):
    """A row's id, and the symptoms (or globs) without one of which it is silent; None: it needs none."""

    id: str
    needs: Sequence[str] | None


def heads_of(tables: Sequence[dict[str, Any]]) -> Iterator[Head]:
    """Yield the heads of condition rows that are given as plain tables."""
    from envdoctor.facts.codec import trusting
    from envdoctor.matrix.tables.conditions import ConditionRow

    make: Any = trusting(ConditionRow)
    for row in map(make, tables):
        yield Head(row.id, row.symptoms if row.needs_symptom else None)


def speaking(heads: Sequence[Head], symptoms: Collection[str]) -> set[str]:
    """Return the ids of the rows that need no symptom, or one of these."""
    seen = frozenset(symptoms)
    wanted = {pattern for head in heads for pattern in head.needs or ()} if seen else set()
    met = {
        pattern for pattern in wanted if pattern in seen or any(glob_matches(one, pattern) for one in seen)
    }
    return {head.id for head in heads if head.needs is None or not met.isdisjoint(head.needs)}
