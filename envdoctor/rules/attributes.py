"""Attributes that an error line misses: which releases have them, and what stands in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from envdoctor.commands import install_commands
from envdoctor.facts import Symptom
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.patterns import row_pattern
from envdoctor.rules.asked import wanted_of
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.conditions import judge
from envdoctor.rules.pairs import pair_remedies
from envdoctor.rules.view import View


def check_attributes(view: View) -> Iterable[Finding]:
    """Find the releases that have the attribute which an error line misses."""
    seen = [s for s in view.facts.symptoms if s.id == "SYM-NO-ATTRIBUTE" or _is_import(s)]
    if not seen:
        raise Skip("no attribute error was pasted")
    missed: dict[str, tuple[tables.AttributeRow, list[Symptom]]] = {}
    for symptom in seen:
        for row in _rows(view, symptom):
            if not _has(view, row):
                missed.setdefault(row.id, (row, []))[1].append(symptom)
    for row, symptoms in missed.values():
        explains = tuple(dict.fromkeys(symptom.id for symptom in symptoms))
        yield replace(_finding(view, row, symptoms[0]), explains=explains)


def _is_import(symptom: Symptom) -> bool:
    return symptom.id.startswith("SYM-IMPORT-") and "name" in symptom.captured


def _rows(view: View, symptom: Symptom) -> Iterator[tables.AttributeRow]:
    captured = symptom.captured
    wanted = next(wanted_of(view.facts, symptom), None) if _is_import(symptom) else None
    asked = wanted.module if wanted else captured.get("module")
    owner = asked or captured.get("class") or captured.get("type") or captured.get("raised") or ""
    for row in view.matrix.rows(tables.AttributeRow):
        if _attribute(symptom) in row.names and row_pattern(row.owner, case=True).fullmatch(owner):
            yield row


def _attribute(symptom: Symptom) -> str | None:
    """The attribute that is missed; `from module import name` misses one, too."""
    return symptom.captured.get("attribute") or symptom.captured.get("name")


def _has(view: View, row: tables.AttributeRow) -> bool:
    return row.library is not None and judge(view, row.library, row.having).holds is True


def _finding(view: View, row: tables.AttributeRow, symptom: Symptom) -> Finding:
    library, having = row.library, row.having
    attribute = _attribute(symptom)
    distribution = view.facts.distribution(library) if library else None
    installed = view.version_text(library) if library else None
    shown = (Evidence(library or "", installed, distribution.source),) if installed and distribution else ()
    since = "; newer releases no longer do" if having.startswith("<") else ""
    where = f"only {library} {having} has it{since}" + (f" ({installed} is installed)" if installed else "")
    return Finding(
        id="ATTRIBUTE-MISSING",
        severity=Severity.ERROR,
        summary=f"{attribute}: {where if library else row.hint}",
        cause=f"The attribute {attribute} came or went with a release.",
        evidence=(*shown, Evidence(symptom.id, symptom.text, symptom.source)),
        remedies=tuple(_remedies(view, row)),
        certainty=Certainty.LIKELY
        if library and judge(view, library, having).holds is not False
        else Certainty.CERTAIN,
        rows=(row.id,),
        sources=(row.source,),
        explains=(symptom.id,),
        prior=0.8,
    )


def _remedies(view: View, row: tables.AttributeRow) -> Iterator[Remedy]:
    if asker := row.asked_by:
        yield from (remedy for remedy in pair_remedies(view, asker) if asker in remedy.pins)
    if row.library:
        pins = {row.library: row.having}
        yield Remedy(f"Use a release of {row.library} that has it.", install_commands(pins), pins)
    if hint := row.hint:
        yield Remedy(hint)


RULES = (Rule("ATTRIBUTE-MISSING", "a missing attribute exists in the installed release", check_attributes),)
