"""Everything that is said of a text or a machine, not only what one test asks for.

`whole_findings.tsv` is the record for the texts of `tests/pastes/whole` and the machines of `tests/machines`:
whose finding it is, its id, how grave, how sure and how likely, its words, remedies, evidence, sources, what
it explains and follows; then of each rule in how many of them it passed, failed or was skipped, and why.
After a rule or a row changed, `python tests/rules/test_whole_findings.py` writes it anew, and its diff says
what else is judged otherwise.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from envdoctor.facts import from_json
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules import AFTERWARDS, RULES, run_checks

HERE = Path(__file__).parent
RECORD = HERE / "whole_findings.tsv"
TEXTS = sorted((HERE.parent / "pastes" / "whole").iterdir())
RULE_IDS = {*(rule.id for rule in RULES), *(identity for identity, _ in AFTERWARDS)}
MACHINES = sorted((HERE.parent / "machines").glob("*.json"))


def told(finding: Finding) -> str:
    """Return a finding on one line."""
    words = [finding.id, finding.severity.value, finding.certainty.value, f"{finding.prior:g}"]
    words += [finding.summary, finding.cause]
    for remedy in finding.remedies:
        pins = " ".join(f"{name}{bound}" for name, bound in remedy.pins.items())
        words += [remedy.text, pins, *remedy.commands]
    words += [f"{e.fact} = {e.value} ({e.source})" for e in finding.evidence]
    words += [f"after {finding.consequence_of}" if finding.consequence_of else "", *finding.sources]
    ranked = {"rows": finding.rows, "explains": finding.explains, "follows": finding.follows}
    words += [f"{name} {' '.join(ids)}" for name, ids in ranked.items() if ids]
    words += ["fallback"] if finding.fallback else []
    return "\t".join(" ".join(str(word).split()) for word in words if word)


@cache
def judged(path: Path) -> tuple[list[str], Counter[str]]:
    """Return what is found in a text or a machine, and the outcomes of the rules."""
    text, matrix = path.read_text(encoding="utf-8"), load_matrix()
    is_text = path in TEXTS
    facts = parse_paste(text, "", matrix.lexicon, path.name) if is_text else from_json(json.loads(text))
    checks, findings = run_checks(facts, matrix, RULES, (), ())
    outcomes = (f"{c.rule}\t{c.outcome.value}\t{c.reason or ''}" for c in checks if c.rule in RULE_IDS)
    said = [f"{path.name}\t{told(finding)}" for finding in findings] or [f"{path.name}\tnothing"]
    return said, Counter(outcomes)


def lines() -> list[str]:
    """Return the record as it would be written today."""
    said = [line for path in (*TEXTS, *MACHINES) for line in judged(path)[0]]
    outcomes = sum((judged(path)[1] for path in (*TEXTS, *MACHINES)), Counter[str]())
    return said + [f"{outcome}\t{count} times" for outcome, count in sorted(outcomes.items())]


@pytest.mark.parametrize("path", [*TEXTS, *MACHINES], ids=lambda path: path.name)
def test_a_text_or_a_machine_is_judged_as_it_was(path: Path) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert judged(path)[0] == [line for line in recorded if line.partition("\t")[0] == path.name]


def test_the_rules_pass_and_are_skipped_as_often_as_they_were() -> None:
    assert lines() == RECORD.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
