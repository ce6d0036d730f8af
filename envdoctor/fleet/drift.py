"""Drift: which facts must agree, which do not, and which nodes are the odd ones. Pure functions."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from envdoctor.facts import Facts
from envdoctor.findings import Severity
from envdoctor.fleet.comparable import UNSET, Value, comparable_facts, missing_package, packages
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import natural_key
from envdoctor.matrix import tables
from envdoctor.values import dataclass

_MINORITY = 0.5
UNJUDGED = "none"


@dataclass(frozen=True, slots=True)
class DriftValue:
    """One of the values of a fact, and the nodes that have it; None is unknown, with the reason."""

    value: str | None
    nodes: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """A fact that should agree and does not; its values stand with the most frequent one first."""

    fact: str
    values: tuple[DriftValue, ...]
    severity: Severity
    row: tables.AgreementRow
    consequence_of: str | None = None
    accepted: bool = False

    @property
    def odd_nodes(self) -> tuple[str, ...]:
        """The nodes that do not have the most frequent value."""
        return tuple(node for value in self.values[1:] for node in value.nodes)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The rows by what they are about, and the names to leave out."""

    facts: Sequence[tables.AgreementRow]
    packages: Sequence[tables.AgreementRow]
    variables: Sequence[tables.AgreementRow]
    uncompared: tuple[str, ...] = ()

    def row(self, rows: Sequence[tables.AgreementRow], name: str) -> tables.AgreementRow | None:
        """Return the row that judges a fact, or None when nobody compares it."""
        if _named(self.uncompared, name):
            return None
        row = next((row for row in rows if _named(row.names, name)), None)
        return None if row is None or row.severity == UNJUDGED else row


def _named(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def find_drift(groups: Sequence[Group], agreement: Agreement) -> tuple[Drift, ...]:
    """Return what drifts between the groups, gravest first, consequences under their causes."""
    found = [
        drift
        for name, row, values in _compared(groups, agreement)
        if (drift := _judge(name, row, groups, values)) is not None
    ]
    return _ordered(_explained(found))


def node_facts(facts: Facts, agreement: Agreement) -> dict[str, tuple[tables.AgreementRow, Value]]:
    """Return every fact of one group that is compared at all, with the row that judges it."""
    variables = {name: Value(value) for name, value in facts.variables.items()}
    tables = (
        (comparable_facts(facts), agreement.facts),
        (packages(facts), agreement.packages),
        (variables, agreement.variables),
    )
    return {
        name: (row, value)
        for values, rows in tables
        for name, value in values.items()
        if (row := agreement.row(rows, name)) is not None
    }


def absent_value(facts: Facts, row: tables.AgreementRow, agreement: Agreement) -> Value:
    """Return the value of a fact that one group has and another does not."""
    return Value(UNSET) if row in agreement.variables else missing_package(facts)


def _compared(
    groups: Sequence[Group], agreement: Agreement
) -> Iterator[tuple[str, tables.AgreementRow, list[Value]]]:
    tables = [node_facts(group.facts, agreement) for group in groups]
    rows = {name: row for table in tables for name, (row, _) in table.items()}
    for name, row in rows.items():
        values = [
            table[name][1] if name in table else absent_value(group.facts, row, agreement)
            for group, table in zip(groups, tables, strict=True)
        ]
        if len(set(values)) > 1:
            yield name, row, values


def _judge(name: str, row: tables.AgreementRow, groups: Sequence[Group], values: list[Value]) -> Drift | None:
    if row.nearness:
        values = _with_near_ones_equal(values, row.nearness)
    nodes: dict[str | None, list[str]] = {}
    reasons: Counter[str] = Counter()
    for group, value in zip(groups, values, strict=True):
        nodes.setdefault(value.text, []).extend(group.nodes)
        if value.text is None:
            reasons[value.reason] += len(group.nodes)
    silent = nodes.pop(None, [])
    known = sorted(nodes.items(), key=lambda item: (-len(item[1]), natural_key(item[0] or "")))
    told = [DriftValue(text, _in_order(where)) for text, where in known]
    absent = row.absence and bool(told) and told[0].value != row.nothing
    if silent and absent and len(silent) < _MINORITY * sum(len(g.nodes) for g in groups):
        told.append(DriftValue(None, _in_order(silent), reasons.most_common(1)[0][0]))
    return Drift(name, tuple(told), Severity(row.severity), row) if len(told) > 1 else None


def _with_near_ones_equal(values: list[Value], nearness: float) -> list[Value]:
    """Give sizes that lie close together the words of their largest."""
    sizes = sorted({v.size: v for v in values if v.size is not None}.items(), reverse=True)
    words: dict[int, Value] = {}
    leader: Value | None = None
    for size, value in sizes:
        if leader is None or leader.size is None or size < leader.size * (1 - nearness):
            leader = value
        words[size] = leader
    return [v if v.size is None else words[v.size] for v in values]


def are_near(one: Value, other: Value, nearness: float) -> bool:
    """True for two sizes within that share of each other."""
    if one.size is None or other.size is None:
        return False
    return abs(one.size - other.size) <= nearness * max(one.size, other.size)


def _in_order(nodes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(nodes, key=natural_key))


def _explained(found: Sequence[Drift]) -> list[Drift]:
    """Point each drift at a cause that its row names and in which all its odd nodes differ too."""
    odd = {drift.fact: set(drift.odd_nodes) for drift in found}
    return [
        replace(
            drift,
            consequence_of=next(
                (
                    f
                    for f in odd
                    if _named(drift.row.follows, f) and odd[drift.fact] <= odd[f] and f != drift.fact
                ),
                None,
            ),
        )
        for drift in found
    ]


def _ordered(found: Sequence[Drift]) -> tuple[Drift, ...]:
    weight = {severity: position for position, severity in enumerate(Severity)}
    roots = [drift for drift in found if drift.consequence_of is None]
    roots.sort(key=lambda d: (weight[d.severity], len(d.odd_nodes), d.fact))
    ordered: list[Drift] = []
    for root in roots:
        ordered.append(root)
        ordered += [d for d in found if d.consequence_of == root.fact]
    ordered += [d for d in found if d not in ordered]
    return tuple(ordered)
