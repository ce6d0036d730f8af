"""Everything that is said of a text or a machine, not only what one test asks for.

`whole_findings.tsv` is the record for the texts of `tests/pastes/whole` and the machines of `tests/machines`:
whose finding it is, its id, how grave and how sure, its words, remedies, evidence and sources; then of each
rule in how many of them it passed, failed or was skipped, and why. After a rule or a row changed, `python
tests/rules/test_whole_findings.py` writes it anew, and its diff says what else is judged otherwise.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

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
    words = [finding.id, finding.severity.value, finding.certainty.value, finding.summary, finding.cause]
    for remedy in finding.remedies:
        pins = " ".join(f"{name}{bound}" for name, bound in remedy.pins.items())
        words += [remedy.text, pins, *remedy.commands]
    words += [f"{e.fact} = {e.value} ({e.source})" for e in finding.evidence]
    words += [f"after {finding.consequence_of}" if finding.consequence_of else "", *finding.sources]
    return "\t".join(" ".join(str(word).split()) for word in words if word)


def lines() -> list[str]:
    """Return the record as it would be written today."""
    matrix, said, outcomes = load_matrix(), [], Counter[str]()
    judged = {p.name: parse_paste(p.read_text(encoding="utf-8"), "", matrix.lexicon, p.name) for p in TEXTS}
    judged |= {p.name: from_json(json.loads(p.read_text(encoding="utf-8"))) for p in MACHINES}
    for name, facts in judged.items():
        checks, findings = run_checks(facts, matrix, RULES, (), ())
        said += [f"{name}\t{told(finding)}" for finding in findings] or [f"{name}\tnothing"]
        outcomes.update(
            f"{c.rule}\t{c.outcome.value}\t{c.reason or ''}" for c in checks if c.rule in RULE_IDS
        )
    return said + [f"{outcome}\t{count} times" for outcome, count in sorted(outcomes.items())]


def test_every_text_and_machine_of_the_record_is_judged_as_it_was() -> None:
    assert lines() == RECORD.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
