"""The absolute standard: facts held against what such nodes must be like; equal faults on all fail."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from envdoctor.facts import Facts
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.fleet.agreement import Agreement
from envdoctor.fleet.answer import NodeFinding
from envdoctor.fleet.comparable import UNSET, comparable_facts, missing_fact, missing_package, packages
from envdoctor.fleet.differing import Drift
from envdoctor.fleet.expecting import Expectation
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import fold, in_order
from envdoctor.fleet.values import Value
from envdoctor.matrix import Matrix, tables

_COUNTED = re.compile(r"^\d+ × ")
_COMPARED = re.compile(r"(>=|<=|!=|>|<)\s*(.+)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
OF_THE_SITE = "expected by the site"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def standards_of(matrix: Matrix) -> tuple[Expectation, ...]:
    """Return the matrix' own expectations."""
    return tuple(
        Expectation(
            id=row.id,
            facts=row.expects,
            severity=Severity(row.severity),
            cards=row.cards or ("*",),
            product=row.product,
            remedy=row.remedy,
            source=row.source,
        )
        for row in matrix.rows(tables.FleetStandardRow)
    )


def find_shortfalls(
    groups: Sequence[Group],
    agreement: Agreement,
    expectations: Sequence[Expectation],
    partitions: Mapping[str, Collection[str]],
) -> tuple[NodeFinding, ...]:
    """Return a finding for each fact that falls short, with the nodes on which it does.

    A site's expectation of a fact stands before the matrix' of the same fact on the same node.
    """
    found: dict[tuple[str, str, str, str], tuple[Expectation, Value, list[str]]] = {}
    for group in groups:
        values = _told(group.facts, agreement)
        settled: dict[str, set[str]] = {}
        for expectation in sorted(expectations, key=lambda e: not e.own):
            if not _concerns(expectation, group.facts):
                continue
            nodes = [n for n in group.nodes if expectation.is_for(n, partitions.get(n, ()))]
            for fact, wanted, value in _short(expectation, values, group.facts, agreement):
                where = [node for node in nodes if node not in settled.get(fact, ())]
                key = (expectation.id, fact, wanted, value.text or value.reason)
                found.setdefault(key, (expectation, value, []))[2].extend(where)
            for fact in expectation.facts:
                settled.setdefault(fact, set()).update(nodes)
    told = []
    for (_, fact, wanted, _), (expectation, value, some) in found.items():
        if nodes_short := in_order(some):
            finding = _finding(expectation, fact, wanted, value, agreement, nodes_short)
            told.append(NodeFinding(finding, nodes_short))
    return tuple(told)


def without_drift(findings: Iterable[NodeFinding], drift: Sequence[Drift]) -> list[NodeFinding]:
    """Return the findings that say more than the drift does: one fact on the same odd nodes is told once."""
    known = {(d.fact, node) for d in drift if not d.tied for node in d.odd_nodes}
    return [
        one
        for one in findings
        if one.finding.evidence[0].source == OF_THE_SITE
        or not all((one.finding.evidence[0].fact, node) in known for node in one.nodes)
    ]


def _told(facts: Facts, agreement: Agreement) -> Mapping[str, Value]:
    variables = {name: Value(value) for name, value in facts.variables.items()}
    return {**variables, **packages(facts), **comparable_facts(facts, agreement.users_xids)}


def _concerns(expectation: Expectation, facts: Facts) -> bool:
    """True when its conditions on cards and product hold."""
    if expectation.product and not fnmatch.fnmatchcase(facts.host.product.get() or "", expectation.product):
        return False
    names = {gpu.name or "" for gpu in facts.gpus.get() or () if gpu.mig != "Enabled"}
    wanted = expectation.cards
    return not wanted or any(fnmatch.fnmatchcase(name, card) for name in names for card in wanted)


def _short(
    expectation: Expectation, told: Mapping[str, Value], facts: Facts, agreement: Agreement
) -> Iterator[tuple[str, str, Value]]:
    for fact, wanted in expectation.facts.items():
        value = told.get(fact) or _absent(facts, fact, agreement)
        if value.text is None:
            if expectation.own:
                yield fact, wanted, value
        elif not meets(value.text, wanted):
            yield fact, wanted, value


def _absent(facts: Facts, fact: str, agreement: Agreement) -> Value:
    """Return the value of a name that these facts lack: a mount, a variable or a package."""
    if any(fact == name or fact.startswith("mount ") for row in agreement.facts for name in row.names):
        return missing_fact(facts, fact)
    return Value(UNSET) if _VARIABLE.fullmatch(fact) else missing_package(facts)


def meets(text: str, wanted: str) -> bool:
    """True when every part of `text` (`4 × 500 W, 4 × 700 W` has two) is as wanted."""
    alternatives = [one.strip() for one in wanted.split("|")]
    parts = [_COUNTED.sub("", part) for part in text.split(", ")] if _COUNTED.match(text) else [text]
    return all(any(_meets(part, one) for one in alternatives) for part in parts)


def _meets(text: str, wanted: str) -> bool:
    compared = _COMPARED.fullmatch(wanted)
    if compared is None:
        return fnmatch.fnmatchcase(text, wanted)
    if compared[1] == "!=":
        return not fnmatch.fnmatchcase(text, compared[2])
    order = _order(text, compared[2])
    if order is None:
        return False
    return {">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0}[compared[1]]


def _order(text: str, bound: str) -> int | None:
    """Return whether a text's number, or its version, is below, at or above a bound's."""
    from packaging.version import InvalidVersion, Version

    try:
        here, there = Version(text.split(" ")[0]), Version(bound)
        return (here > there) - (here < there)
    except InvalidVersion:
        numbers = _NUMBER.match(text), _NUMBER.match(bound)
    if not (numbers[0] and numbers[1]):
        return None
    one, other = float(numbers[0][0]), float(numbers[1][0])
    return (one > other) - (one < other)


def _finding(
    expectation: Expectation,
    fact: str,
    wanted: str,
    value: Value,
    agreement: Agreement,
    nodes: Sequence[str],
) -> Finding:
    tables = (agreement.facts, agreement.packages, agreement.variables)
    row = next((row for rows in tables if (row := agreement.row(rows, fact)) is not None), None)
    is_now = f"unknown ({value.reason})" if value.text is None else value.text
    cards = (
        "" if expectation.own or expectation.cards == ("*",) else f" for {' and '.join(expectation.cards)}"
    )
    expected = f"{wanted.replace('|', ' or ')} is expected{cards}"
    return Finding(
        id=expectation.id,
        severity=expectation.severity,
        summary=f"{fact} is {is_now}: {expected}.",
        cause=expectation.why or (row.why if row else "The site expects it."),
        certainty=Certainty.UNCERTAIN if value.text is None else Certainty.CERTAIN,
        evidence=(Evidence(fact, is_now, OF_THE_SITE if expectation.own else fold(nodes)),),
        remedies=(Remedy(expectation.remedy),) if expectation.remedy else (),
        rows=() if expectation.own else (expectation.id,),
        sources=(expectation.source,),
    )
