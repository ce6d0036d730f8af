"""Every row that ships is sourced, dated, well-formed, and compiled."""

from __future__ import annotations

import json

import pytest

from envdoctor.facts import Facts
from envdoctor.matrix import ConditionRow, load_matrix
from envdoctor.matrix.compile import compile_rows
from envdoctor.matrix.load import find_folder
from envdoctor.rules.conditions import judge
from envdoctor.rules.view import View

ROWS = load_matrix().conditions


DESCRIBING = {"gpu", "key", "symptom", "tracker", "model"}


def test_more_than_three_hundred_curated_rows_decide_something() -> None:
    tables = load_matrix().tables
    assert sum(len(rows) for kind, rows in tables.items() if kind not in DESCRIBING) >= 300


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_condition_can_be_judged(row: ConditionRow) -> None:
    view = View(Facts(), load_matrix())
    for conditions in (row.when, row.unless, *(remedy.when for remedy in row.remedies)):
        for key, text in conditions.items():
            judge(view, key, text)


def test_symptoms_that_rows_name_exist() -> None:
    import fnmatch

    known = [row["id"] for row in load_matrix().rows("symptom")]
    named = {pattern for row in ROWS for pattern in row.symptoms}
    assert {p for p in named if not any(fnmatch.fnmatchcase(i, p) for i in known)} == set()


def test_the_compiled_rows_are_those_of_the_toml_files() -> None:
    folder = find_folder()
    shipped = json.loads((folder / "releases" / "rows.json").read_text(encoding="utf-8"))
    assert shipped == json.loads(compile_rows(folder)), "run: python -m envdoctor.matrix.compile"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_for_a_general_error_says_which_it_explains(row: ConditionRow) -> None:
    general = {"SYM-IMPORT-NAME", "SYM-NO-MODULE", "SYM-UNEXPECTED-KWARG", "SYM-NO-ATTRIBUTE", "SYM-IMPORT-*"}
    if general & set(row.symptoms):
        assert row.captured or any(key.startswith("sym.") for key in row.when)
