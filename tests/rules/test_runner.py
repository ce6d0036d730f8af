"""The list of rules: whole, and read only as far as the facts ask for it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

from envdoctor.rules import RULES


def test_every_rule_of_every_family_is_listed_once() -> None:
    for family in sorted({listed.module for listed in RULES}):
        module = import_module(f"envdoctor.rules.{family}")
        assert [rule.id for rule in module.RULES] == [r.id for r in RULES if r.module == family], family


def test_rules_without_their_kind_of_facts_are_skipped_unread() -> None:
    code = """
import sys
from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts
found = diagnose_facts(Facts())
assert not any(check.outcome == "crashed" for check in found.checks)
print(*(name for name in sys.modules if name.startswith("envdoctor.rules.")))
"""
    read = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {f"envdoctor.rules.{r.module}" for r in RULES if r.of} & set(read.split())
