"""Machines and texts at the edges of what the rules ask, and all that is found in each.

A line of `cases.tsv` holds a machine of `tests/machines`, by the end of its file's name, and what is
otherwise on it (`«name» path = JSON | …`), or a text (`\\n` is a break); then what is found there and not in
the machine as it is, and which rules pass that do not pass there. To add one, write the case alone and run
`python tests/rules/test_cases.py`: it fills in what is found, and its diff says what else is.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_whole_findings import MACHINES, RULE_IDS, told

from envdoctor.facts import Facts, from_json
from envdoctor.findings import Outcome
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules import RULES, run_checks

RECORD = Path(__file__).parent / "cases.tsv"
RECORDED = [line.partition("\t")[::2] for line in RECORD.read_text(encoding="utf-8").splitlines()]


def facts_of(case: str) -> Facts:
    """Return what a case tells."""
    if not case.startswith("«"):
        return parse_paste(case.replace("\\n", "\n"), "", load_matrix().lexicon)
    name, _, changes = case[1:].partition("»")
    [machine] = [path for path in MACHINES if path.stem.endswith(name)]
    plain = json.loads(machine.read_text(encoding="utf-8"))
    for change in filter(None, changes.split(" | ")):
        path, _, value = change.strip().partition(" = ")
        put(plain, path.split("/"), json.loads(value))
    return from_json(plain)


def put(plain: Any, path: list[str], value: Any) -> None:
    """Put a value where the path leads; null takes away what stands there."""
    for step in path[:-1]:
        plain = plain[int(step)] if isinstance(plain, list) else plain.setdefault(step, {})
    if value is None and isinstance(plain, dict):
        plain.pop(path[-1], None)
    else:
        plain[int(path[-1]) if isinstance(plain, list) else path[-1]] = value


@cache
def judged(case: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is found in a case, and the rules that pass."""
    checks, findings = run_checks(facts_of(case), load_matrix(), RULES, (), ())
    passed = tuple(c.rule for c in checks if c.rule in RULE_IDS and c.outcome is Outcome.PASSED)
    return tuple(told(finding).replace("\t", " | ") for finding in findings), passed


def found(case: str) -> str:
    """Return what is found in a case: of a changed machine what is not found in it as it is, or no more."""
    changed = case.startswith("«") and case[-1] != "»"
    usual, usually = judged(case.partition("»")[0] + "»") if changed else ((), ())
    here, passed = judged(case)
    gone = [f"no {one.partition(' ')[0]}" for one in usual if one not in here]
    passing = [f"passed: {rule}" for rule in passed if rule not in usually]
    return " || ".join([*(one for one in here if one not in usual), *gone, *passing])


def lines() -> list[str]:
    """Return the record as it would be written today."""
    return [f"{case}\t{found(case)}" for case, _ in RECORDED]


@pytest.mark.parametrize(("case", "said"), RECORDED, ids=range(len(RECORDED)))
def test_a_case_is_judged_as_it_was(case: str, said: str) -> None:
    assert found(case) == said


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
