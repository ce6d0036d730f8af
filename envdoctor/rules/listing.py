"""Every check with what explains it, as `envdoctor rules`, the pages and the assistants' server show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envdoctor.matrix import Matrix
from envdoctor.matrix.tables.conditions import ConditionRow
from envdoctor.rules import AFTERWARDS, RULES


def explained_checks(matrix: Matrix) -> Iterator[dict[str, Any]]:
    """Yield each rule and each row that is a check: its id, its title and what else is told of it."""
    for rule in (listed.rule for listed in RULES):
        yield _rule_entry(rule.id, rule.title, rule.source)
    for named in AFTERWARDS:
        yield _rule_entry(*named)
    yield from map(_row_entry, matrix.conditions)


def _rule_entry(identity: str, title: str, source: str = "") -> dict[str, Any]:
    return {"id": identity, "kind": "rule", "title": title, "source": source}


def _row_entry(row: ConditionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": "row",
        "title": row.summary,
        "severity": row.severity,
        "cause": row.cause,
        "when": dict(row.when),
        "symptoms": list(row.symptoms),
        "remedies": [remedy.text for remedy in row.remedies],
        "source": row.source,
        "checked_on": row.checked_on,
        "basis": row.basis,
    }
