"""An accepted state: what changed on each node since a fleet's answer was saved and accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError
from envdoctor.facts import Facts, FactsFormatError, from_json
from envdoctor.findings import Severity
from envdoctor.fleet.agreement import Agreement, absent_value, node_facts
from envdoctor.fleet.answer import SCHEMA, Change, Comparison, FleetAnswer
from envdoctor.fleet.differing import Drift
from envdoctor.fleet.drift import are_near
from envdoctor.fleet.merge import Group
from envdoctor.fleet.nodeset import expand, in_order
from envdoctor.fleet.values import Value
from envdoctor.inputs import parse_json, read_input
from envdoctor.matrix import tables

MAX_BASELINE_BYTES = 96 << 20


def read_baseline(path: Path) -> tuple[Group, ...]:
    """Return the groups of a saved answer; raises InputError naming the file and what is wrong."""
    try:
        data = parse_json(read_input(path, MAX_BASELINE_BYTES))
    except InputError as error:
        raise InputError(f"--baseline {error}") from None
    except ValueError:
        raise InputError(f"--baseline {path}: no JSON") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise InputError(f"--baseline {path}: not an answer of `envdoctor fleet --format json`")
    try:
        return tuple(_read_group(group) for group in data["groups"])
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"--baseline {path}: its groups are malformed") from None
    except (ValueError, FactsFormatError) as error:
        raise InputError(f"--baseline {path}: {error}") from None


def _read_group(group: Any) -> Group:
    return Group(tuple(expand(group["nodes"])), from_json(group["facts"]), group["facts"])


def compare(answer: FleetAnswer, accepted: Sequence[Group], agreement: Agreement, file: str) -> FleetAnswer:
    """Return the answer with what changed, and with the drift that was there before marked as accepted."""
    before = {node: group for group in accepted for node in group.nodes}
    now = {node: group for group in answer.groups for node in group.nodes}
    asked = {*now, *(node for one in answer.unreached for node in one.nodes)}
    changes = _changes(before, now, agreement)
    changed = {(change.fact, node) for change in changes for node in change.nodes}
    comparison = Comparison(
        file=file,
        changes=changes,
        missing=in_order(set(before) - asked),
        new=in_order(set(now) - set(before)),
    )
    drift = tuple(replace(d, accepted=_was_there(d, changed, before)) for d in answer.drift)
    return replace(answer, drift=drift, comparison=comparison)


def _was_there(drift: Drift, changed: set[tuple[str, str]], before: Mapping[str, Group]) -> bool:
    """True when every odd node had its value in the accepted state already."""
    return all(node in before and (drift.fact, node) not in changed for node in drift.other_nodes)


def _changes(
    before: Mapping[str, Group], now: Mapping[str, Group], agreement: Agreement
) -> tuple[Change, ...]:
    """Compare each pair of former and present facts once, and gather the nodes that share a change."""
    pairs: dict[tuple[int, int], tuple[Group, Group, list[str]]] = {}
    for node in now.keys() & before.keys():
        former, present = before[node], now[node]
        pairs.setdefault((id(former), id(present)), (former, present, []))[2].append(node)
    found: dict[tuple[str, str | None, str | None], tuple[Severity, list[str]]] = {}
    for former, present, nodes in pairs.values():
        for fact, row, was, is_now in _differences(former.facts, present.facts, agreement):
            key = (fact, was.text, is_now.text)
            found.setdefault(key, (Severity(row.severity), []))[1].extend(nodes)
    weight = {severity: position for position, severity in enumerate(Severity)}
    changes = [Change(*key, in_order(nodes), severity) for key, (severity, nodes) in found.items()]
    return tuple(sorted(changes, key=lambda c: (weight[c.severity], c.fact)))


def _differences(
    former: Facts, present: Facts, agreement: Agreement
) -> Iterator[tuple[str, tables.AgreementRow, Value, Value]]:
    was, now = node_facts(former, agreement), node_facts(present, agreement)
    for fact in [*was, *(fact for fact in now if fact not in was)]:
        row = (was.get(fact) or now[fact])[0]
        old = was[fact][1] if fact in was else absent_value(former, fact, row, agreement)
        new = now[fact][1] if fact in now else absent_value(present, fact, row, agreement)
        if old.text != new.text and _counts(old, new, row):
            yield fact, row, old, new


def _counts(old: Value, new: Value, row: tables.AgreementRow) -> bool:
    if old.text is None or new.text is None:
        return row.absence
    return not are_near(old, new, row.nearness)
