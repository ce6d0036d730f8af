"""A row of the compatibility matrix: one fact with its id, source, date and basis."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BASES = ("wheel inspection", "upstream statement", "measured run", "upstream source", "issue thread")
PROVENANCE = ("id", "source", "checked_on", "basis")
SEVERITIES = ("error", "warning", "note")

_CONDITION_KEYS = frozenset(
    (
        *PROVENANCE,
        "when",
        "symptoms",
        "captured",
        "raises",
        "severity",
        "summary",
        "cause",
        "remedies",
        "consequence_of",
    )
) | {"prior", "fallback", "solve", "unless", "title"}


class RowError(ValueError):
    """A row is malformed; the message names the file and the row."""


@dataclass(frozen=True, slots=True)
class RowRemedy:
    """A remedy as a row states it; texts are templates over the facts."""

    text: str
    commands: tuple[str, ...]
    pins: Mapping[str, str]
    when: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A row that decides: where all of `when` holds and nothing of `unless`, something is wrong.

    With `raises = "symptom"` it speaks only when one of `symptoms` was seen; then unknown conditions lower
    its certainty and contradicted ones silence it. A symptom counts only if it captured what `captured` says.
    """

    id: str
    when: Mapping[str, str]
    unless: Mapping[str, str]
    symptoms: tuple[str, ...]
    captured: Mapping[str, str]
    raises: str
    severity: str
    summary: str
    cause: str
    remedies: tuple[RowRemedy, ...]
    consequence_of: tuple[str, ...]
    prior: float
    fallback: bool
    solve: bool
    source: str
    checked_on: str
    basis: str


def check_provenance(row: Mapping[str, Any], where: str) -> None:
    """Raise RowError unless the row has a stable id, a source, a date and a basis."""
    for key in PROVENANCE:
        if not isinstance(row.get(key), str) or not row[key]:
            raise RowError(f"{where}: row {row.get('id', '?')!r} has no {key}")
    if not re.fullmatch(r"[A-Z0-9][A-Z0-9.+-]*", row["id"]):
        raise RowError(f"{where}: {row['id']!r} is no row id (capitals, digits and hyphens)")
    if not re.match(r"https?://|wheel:|measured:|general:|git:", row["source"]):
        raise RowError(f"{where}: {row['id']}: source is no address")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", row["checked_on"]):
        raise RowError(f"{where}: {row['id']}: checked_on is no date")
    if row["basis"] not in BASES:
        raise RowError(f"{where}: {row['id']}: basis is none of {', '.join(BASES)}")


def parse_condition_row(row: Mapping[str, Any], where: str) -> ConditionRow:
    """Read a `[[row]]` table; raises RowError naming what is wrong."""
    identity = row.get("id", "?")
    if unknown := set(row) - _CONDITION_KEYS:
        raise RowError(f"{where}: {identity}: unknown key {sorted(unknown)[0]!r}")
    for key in ("summary", "cause"):
        if not isinstance(row.get(key), str):
            raise RowError(f"{where}: {identity}: no {key}")
    when, symptoms = dict(row.get("when", {})), tuple(row.get("symptoms", ()))
    if not when and not symptoms:
        raise RowError(f"{where}: {identity}: neither when nor symptoms")
    raises = row.get("raises", "always" if when else "symptom")
    if raises not in ("always", "symptom") or (raises == "symptom" and not symptoms):
        raise RowError(f"{where}: {identity}: raises is 'always', or 'symptom' with symptoms")
    if row.get("severity") not in SEVERITIES:
        raise RowError(f"{where}: {identity}: severity is none of {', '.join(SEVERITIES)}")
    return ConditionRow(
        id=identity,
        when=when,
        unless=dict(row.get("unless", {})),
        symptoms=symptoms,
        captured=dict(row.get("captured", {})),
        raises=raises,
        severity=row["severity"],
        summary=row["summary"],
        cause=row["cause"],
        remedies=tuple(_parse_remedy(r, f"{where}: {identity}") for r in row.get("remedies", ())),
        consequence_of=tuple(row.get("consequence_of", ())),
        prior=float(row.get("prior", 0.5)),
        fallback=bool(row.get("fallback", False)),
        solve=bool(row.get("solve", True)),
        source=row["source"],
        checked_on=row["checked_on"],
        basis=row["basis"],
    )


def _parse_remedy(remedy: Mapping[str, Any], where: str) -> RowRemedy:
    if unknown := set(remedy) - {"text", "commands", "pins", "when"}:
        raise RowError(f"{where}: remedy has an unknown key {sorted(unknown)[0]!r}")
    if not isinstance(remedy.get("text"), str):
        raise RowError(f"{where}: remedy has no text")
    return RowRemedy(
        remedy["text"],
        tuple(remedy.get("commands", ())),
        dict(remedy.get("pins", {})),
        dict(remedy.get("when", {})),
    )
