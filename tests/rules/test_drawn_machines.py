"""Machines, runs and messages drawn at random, at the edges of what the rules ask: all that is found in each.

`drawn_machines.tsv` is the record, a draw a line: what is found and which rules pass, and a digest of every
word of it. Each family draws what its rules ask of; after a rule or a row changed, `python
tests/rules/test_drawn_machines.py` writes the record anew, and with a NUMBER shows all that is found in one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from draws import Drawn, Plain, build, message, report, run, states
from test_whole_findings import RULE_IDS, told

from envdoctor.facts import Facts, from_json
from envdoctor.facts.codec import to_json
from envdoctor.findings import Outcome
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules import RULES, run_checks

RECORD = Path(__file__).with_name("drawn_machines.tsv")
SHARES = 25
FAMILIES: tuple[tuple[Callable[[Random], Drawn], int, frozenset[str]], ...] = (
    (run, 110, frozenset(("fit", "serving_fit", "settings_fit", "settings_relations", "settings_data"))),
    (states, 100, frozenset(("visibility", "occupancy", "host", "variables"))),
    (build, 100, frozenset()),
    (message, 90, frozenset()),
    (report, 100, frozenset()),
)
"""How many of each are drawn, and the modules of the rules that are asked: all where none is named."""
DRAWS = [(draw, seed) for draw, count, _ in FAMILIES for seed in range(count)]


def facts_of(plain: Plain, text: str) -> Facts:
    """Return the facts that are told, and those that the text tells beside them."""
    beside = to_json(parse_paste(text, "", load_matrix().lexicon)) if text else {}
    read = {key: beside[key] for key in ("symptoms", "errors", "notes") if key in beside}
    whole = {"schema": "envdoctor.facts/1", "origin": "probe", **plain, **read}
    return from_json(json.loads(json.dumps(whole)))


def judged(number: int) -> tuple[list[str], list[str]]:
    """Return what is found in a draw, and the rules that pass."""
    draw, seed = DRAWS[number]
    asked = next(modules for family, _, modules in FAMILIES if family is draw)
    rules = [rule for rule in RULES if not asked or rule.module in asked]
    select = [rule.id for rule in rules] if asked else []
    facts = facts_of(*draw(Random(f"{draw.__name__} {seed}")))
    checks, findings = run_checks(facts, load_matrix(), rules, select, ())
    said = [f"{c.rule} {c.outcome.value} {c.reason or ''}" for c in checks if c.rule in RULE_IDS]
    return [told(f) for f in findings], [s for s in said if Outcome.PASSED.value in s or asked]


def line(number: int) -> str:
    """Return the record's line of a draw."""
    found, passed = judged(number)
    ids = " ".join(finding.partition("\t")[0] for finding in found)
    return f"{DRAWS[number][0].__name__}\t{ids or 'nothing'}\t{crc32(repr((found, passed)).encode()):08x}"


@pytest.mark.parametrize("share", range(SHARES))
def test_each_draw_is_judged_as_it_was(share: int) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert len(recorded) == len(DRAWS)
    told = {number: line(number) for number in range(share, len(DRAWS), SHARES)}
    assert [(number, said) for number, said in told.items() if said != recorded[number]] == []


if __name__ == "__main__":
    if sys.argv[1:]:
        draw, seed = DRAWS[int(sys.argv[1])]
        plain, text = draw(Random(f"{draw.__name__} {seed}"))
        print(
            json.dumps(plain), text, *(part for said in judged(int(sys.argv[1])) for part in said), sep="\n"
        )
    else:
        RECORD.write_text("".join(f"{line(n)}\n" for n in range(len(DRAWS))), encoding="utf-8")
