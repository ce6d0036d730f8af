"""Drift: which facts differ between nodes that should be alike, and which nodes are the odd ones. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envdoctor.findings import Severity
from envdoctor.fleet.agreement import Agreement, absent_value, node_facts
from envdoctor.fleet.causes import explain
from envdoctor.fleet.differing import Drift, DriftValue
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import in_order, natural_key
from envdoctor.fleet.own import Own
from envdoctor.fleet.pools import Pool
from envdoctor.fleet.values import Value
from envdoctor.matrix import tables

_MINORITY = 0.5
_NEARLY_ALL = 0.85
"""One of eight nodes, or two of sixteen, are few."""
EACH_ITS_OWN = "another on each of these nodes"
OWN_FACTS = {"gpu.pcie link": ("slow_links", "full"), "gpu.memory held": ("held", "by nothing")}
"""Facts that no group keeps: the field of `Own`, and its words where there is nothing to tell."""


def find_drift(
    pools: Sequence[Pool],
    agreement: Agreement,
    own: Mapping[str, Own] | None = None,
    scattered: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Drift, ...]:
    """Return what drifts within each pool, gravest first, consequences under their causes.

    `own` is what each node has for itself; `scattered` the variables that differ on every node with them.
    """
    return tuple(
        drift
        for pool in pools
        for drift in explain(
            [
                *_of_groups(pool, agreement),
                *_of_nodes(pool, agreement, own or {}),
                *_of_variables(pool, agreement, scattered or {}),
            ],
            agreement,
        )
    )


def _of_groups(pool: Pool, agreement: Agreement) -> Iterator[Drift]:
    places = _Places(pool.groups)
    for name, row, values in _compared(pool.groups, agreement):
        drift = _judge(pool.name, name, row, places, values)
        if drift is not None:
            yield drift


def _of_nodes(pool: Pool, agreement: Agreement, own: Mapping[str, Own]) -> Iterator[Drift]:
    """Yield what few nodes have for themselves where nearly all have nothing."""
    nodes = [node for group in pool.groups for node in group.nodes if node in own]
    for name, (attribute, nothing) in OWN_FACTS.items():
        row = agreement.row(agreement.facts, name)
        told: dict[str, list[str]] = {}
        for node in nodes if row else ():
            told.setdefault(getattr(own[node], attribute), []).append(node)
        fine = told.pop("", [])
        if row and told and len(fine) >= _NEARLY_ALL * len(nodes):
            values = [DriftValue(nothing, in_order(fine))]
            values += [DriftValue(words, in_order(where)) for words, where in told.items()]
            yield Drift(name, tuple(values), Severity(row.severity), row, pool=pool.name)


def _of_variables(
    pool: Pool, agreement: Agreement, scattered: Mapping[str, Sequence[str]]
) -> Iterator[Drift]:
    """Yield one difference for a variable with a value of its own on each node, were it of 10,000 values."""
    members = {node for group in pool.groups for node in group.nodes}
    for name, setters in scattered.items():
        row = agreement.row(agreement.variables, name)
        where = in_order(members.intersection(setters))
        if row and len(where) > 1:
            values = [DriftValue(EACH_ITS_OWN, where)]
            if rest := in_order(members.difference(setters)):
                values.append(DriftValue("unset", rest))
            yield Drift(name, tuple(values), Severity(row.severity), row, tied=True, pool=pool.name)


def _compared(
    groups: Sequence[Group], agreement: Agreement
) -> Iterator[tuple[str, tables.AgreementRow, list[Value]]]:
    told = [node_facts(group.facts, agreement) for group in groups]
    rows = {name: row for table in told for name, (row, _) in table.items()}
    for name, row in rows.items() if len(groups) > 1 else ():
        values = [
            table[name][1] if name in table else absent_value(group.facts, name, row, agreement)
            for group, table in zip(groups, told, strict=True)
        ]
        if len(set(values)) > 1:
            yield name, row, values


@dataclass(slots=True)
class _Places:
    """The nodes of some groups together, each set made once."""

    groups: Sequence[Group]
    _known: dict[tuple[int, ...], tuple[str, ...]] = field(default_factory=dict)

    def nodes(self, places: Sequence[int]) -> tuple[str, ...]:
        """Return the nodes of the groups at these places, in order."""
        key = tuple(places)
        if key not in self._known:
            self._known[key] = in_order(node for place in key for node in self.groups[place].nodes)
        return self._known[key]

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return sum(len(group.nodes) for group in self.groups)


def _judge(
    pool: str, name: str, row: tables.AgreementRow, places: _Places, values: list[Value]
) -> Drift | None:
    if row.nearness:
        values = _with_near_ones_equal(values, row.nearness)
    found: dict[str | None, list[int]] = {}
    reasons: Counter[str] = Counter()
    for place, value in enumerate(values):
        found.setdefault(value.text, []).append(place)
        if value.text is None:
            reasons[value.reason] += len(places.groups[place].nodes)
    silent = places.nodes(found.pop(None, []))
    told = [DriftValue(text, places.nodes(where)) for text, where in found.items()]
    told.sort(key=lambda value: (-len(value.nodes), natural_key(value.nodes[0])))
    tied = len(told) > 1 and len(told[0].nodes) == len(told[1].nodes)
    absent = row.absence and bool(told) and told[0].value != row.nothing
    if silent and absent and len(silent) < _MINORITY * places.count:
        told.append(DriftValue(None, silent, reasons.most_common(1)[0][0]))
    if len(told) < 2:
        return None
    return Drift(name, tuple(told), Severity(row.severity), row, tied=tied, pool=pool)


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
