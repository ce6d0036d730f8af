"""What must agree between nodes: the rows of the matrix, asked by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from envdoctor.facts import Facts
from envdoctor.fleet.comparable import UNSET, comparable_facts, missing_fact, missing_package, packages
from envdoctor.fleet.values import Value
from envdoctor.matrix import tables

UNJUDGED = "none"
Row = tables.AgreementRow


@dataclass(frozen=True)
class Agreement:
    """The rows by what they are about, and the names to leave out."""

    facts: Sequence[Row]
    packages: Sequence[Row]
    variables: Sequence[Row]
    uncompared: tuple[str, ...] = ()
    users_xids: frozenset[int] = frozenset()
    """Xids that are programs' own faults."""
    _known: dict[tuple[int, str], Row | None] = field(default_factory=dict)

    def row(self, rows: Sequence[Row], name: str) -> Row | None:
        """Return the row that judges a fact, or None when nobody compares it."""
        key = (id(rows), name)
        if key not in self._known:
            self._known[key] = self._found(rows, name)
        return self._known[key]

    def _found(self, rows: Sequence[Row], name: str) -> Row | None:
        if named(self.uncompared, name):
            return None
        row = next((row for row in rows if named(row.names, name)), None)
        return None if row is None or row.severity == UNJUDGED else row


def named(patterns: Iterable[str], name: str) -> bool:
    """True when one of the patterns (`*` for any letters) names it."""
    return any(pattern == name or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)


def node_facts(facts: Facts, agreement: Agreement) -> dict[str, tuple[Row, Value]]:
    """Return every fact of one group that is compared at all, with the row that judges it."""
    variables = {name: Value(value) for name, value in facts.variables.items()}
    told = (
        (comparable_facts(facts, agreement.users_xids), agreement.facts),
        (packages(facts), agreement.packages),
        (variables, agreement.variables),
    )
    return {
        name: (row, value)
        for values, rows in told
        for name, value in values.items()
        if (row := agreement.row(rows, name)) is not None
    }


def absent_value(facts: Facts, name: str, row: Row, agreement: Agreement) -> Value:
    """Return the value of a fact that one group has and another does not."""
    if row in agreement.variables:
        return Value(UNSET)
    return missing_fact(facts, name) if row in agreement.facts else missing_package(facts)
