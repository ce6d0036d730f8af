"""Every row that ships is sourced, dated, well-formed, and compiled."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from envdoctor.fact_files import find_folder
from envdoctor.facts import Facts
from envdoctor.matrix import load_matrix, tables
from envdoctor.matrix.compile import write_rows
from envdoctor.matrix.load import read_compiled
from envdoctor.pastes.symptoms import scan
from envdoctor.rules.conditions import judge
from envdoctor.rules.view import View

ROWS = load_matrix().conditions

NEW_CARD = """
[[gpu]]
id = "GPU-OF-TOMORROW"
name = "NVIDIA Card of Tomorrow"
compute_capability = "12.1"
pci = ["ffff"]
source = "https://example.com/card"
checked_on = "2026-11-20"
basis = "upstream statement"
"""

DESCRIBING = {"gpu", "key", "symptom", "tracker", "model", "secret_format", "secret_word"}


def test_more_than_three_hundred_curated_rows_decide_something() -> None:
    tables = load_matrix().tables
    assert sum(len(rows) for kind, rows in tables.items() if kind not in DESCRIBING) >= 300


def test_every_condition_can_be_judged() -> None:
    view = View(Facts(), load_matrix())
    for row in ROWS:
        for conditions in (row.when, row.unless, *(remedy.when for remedy in row.remedies)):
            for key, text in conditions.items():
                judge(view, key, text)


def test_symptoms_that_rows_name_exist() -> None:
    import fnmatch

    known = [row.id for row in load_matrix().rows(tables.SymptomRow)]
    named = {pattern for row in ROWS for pattern in row.symptoms}
    assert {p for p in named if not any(fnmatch.fnmatchcase(i, p) for i in known)} == set()


def test_compiled_rows_are_those_of_the_toml_files(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(find_folder(), tmp_path / "matrices"))
    write_rows(folder)
    compiled = load_matrix(folder)
    (folder / "releases" / "rows.jsonl").unlink()
    load_matrix.cache_clear()
    assert dict(load_matrix(folder).tables) == dict(compiled.tables)
    assert load_matrix(folder).date == compiled.date


def test_an_edited_row_is_in_force_at_once(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(find_folder(), tmp_path / "matrices"))
    assert read_compiled(folder)
    with (folder / "gpus.toml").open("a") as file:
        file.write(NEW_CARD)
    assert "GPU-OF-TOMORROW" in load_matrix(folder).by_id


def test_a_row_for_a_general_error_says_which_it_explains() -> None:
    general = {"SYM-IMPORT-NAME", "SYM-NO-MODULE", "SYM-UNEXPECTED-KWARG", "SYM-NO-ATTRIBUTE", "SYM-IMPORT-*"}
    speaking = [row for row in ROWS if general & set(row.symptoms)]
    assert speaking
    assert [
        row.id for row in speaking if not row.captured and not any(key.startswith("sym.") for key in row.when)
    ] == []


def test_a_remedy_that_sets_a_share_of_the_cards_says_which_way_it_moves_it() -> None:
    keys = ("tp", "gpu_memory_utilization", "max_num_seqs", "max_model_len")
    flags = {
        row.native.replace("_", "-") for row in load_matrix().rows(tables.KeyRow) if row.canonical in keys
    }
    silent = [
        (row.id, command)
        for row in ROWS
        for remedy in row.remedies
        for command in remedy.commands
        for flag in re.findall(r"--([\w-]+) [\d.]+", command)
        if command.startswith("--") and flag.replace("_", "-") in flags and flag not in remedy.toward
    ]
    assert not silent


def test_a_setting_that_is_merely_listed_is_no_trouble() -> None:
    matrix = load_matrix()
    fields = (
        matrix.generated(f"fields/{name}") for name in ("accelerate", "deepspeed", "transformers", "vllm")
    )
    keys = sorted(
        {
            key
            for one in fields
            for part in _parts(one)
            for key in part
            if re.fullmatch(r"[a-z_0-9]{4,60}", key)
        }
    )
    loud = {id for row in ROWS if row.raises == "symptom" and not row.when for id in row.symptoms}
    patterns = [row for row in matrix.rows(tables.SymptomRow) if row.id in loud and not row.informs]
    assert len(keys) > 1000
    for form in ("{}: False", "'{}': None,", "--{} 1"):
        assert [sight.text for sight in scan([form.format(key) for key in keys], patterns)] == []


def _parts(data: object) -> Iterator[dict[str, object]]:
    """Yield each mapping within."""
    if isinstance(data, dict):
        yield data
        for value in data.values():
            yield from _parts(value)
