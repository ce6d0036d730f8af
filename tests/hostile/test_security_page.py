"""Every promise of SECURITY.md names a test that there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| (?P<promise>[^|]+) \| `(?P<test>[^`|]+)` \|")
LINES = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
PROMISES = [ROW.fullmatch(line) for line in LINES if line.startswith("| ") and "`tests/" in line]


def test_each_row_is_a_promise_with_its_test():
    rows = [line for line in LINES if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) == len(PROMISES) >= 18
    assert None not in PROMISES


@pytest.mark.parametrize("test", sorted({row["test"] for row in PROMISES if row}))
def test_the_named_test_is_there(test):
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert name in tests if name else any(one.startswith("test_") for one in tests)
