"""`matrix verify` names each thing that no longer holds; `status` and `show` tell what is held."""

from __future__ import annotations

import argparse
import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_index import FakeIndex

from envdoctor.cli import main
from envdoctor.cli.output import Progress
from envdoctor.errors import Unavailable
from envdoctor.harvest.interface_tables import encode
from envdoctor.harvest.interfaces import Interface
from envdoctor.harvest.store import PackageStore
from envdoctor.harvest.update import Updater
from envdoctor.harvest.verify import compare_facts, wheels_of_rows
from envdoctor.matrix import load
from envdoctor.matrix.interface_records import load_record
from envdoctor.matrix.late_tables import pack_tables
from envdoctor.matrix.load import Matrix, load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.matrix.status import matrix_status
from envdoctor.report import Format, draw
from envdoctor.report.document import Document
from envdoctor.report.knowledge import row_document, status_document

ROW = """
[[row]]
id = "BNB-{n}"
when = {{ bitsandbytes = "==0.46.1" }}
severity = "error"
summary = "a summary"
cause = "a cause"
source = "wheel:{filename}"
checked_on = "2026-11-20"
basis = "wheel inspection"
remedies = [{{ text = "do this", pins = {{ bitsandbytes = ">=0.47" }} }}]
"""
MEMBERS = {"bitsandbytes/libbitsandbytes_cuda126.so": b""}
WHEEL = "bitsandbytes-0.46.1-py3-none-any.whl"


@pytest.fixture
def matrix_folder(index: FakeIndex, tmp_path, monkeypatch, capsys) -> Iterator[Path]:
    """A matrix made from the fake index: one row, one table, and the snapshot of a store."""
    forget_what_was_loaded()
    folder = tmp_path / "matrices"
    (folder / "releases").mkdir(parents=True)
    (folder / "quantization.toml").write_text(ROW.format(n=1, filename=WHEEL))
    index.add_wheel("bitsandbytes", "0.46.1", members=MEMBERS)
    monkeypatch.setenv("ENVDOCTOR_MATRICES", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    arguments = ["matrix", "update", "--package", "bitsandbytes", "-q"]
    assert main([*arguments, "--store", str(tmp_path / "store"), "--releases", str(folder / "releases")]) == 0
    capsys.readouterr()
    yield folder
    forget_what_was_loaded()


def forget_what_was_loaded() -> None:
    for loader in (load_matrix, load_snapshot, load._read_generated):
        loader.cache_clear()


def verify(capsys, *arguments: str) -> tuple[int, dict]:
    capsys.readouterr()
    code = main(["matrix", "verify", "--format", "json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_what_was_just_read_holds(matrix_folder, capsys):
    assert verify(capsys) == (0, {"schema": "envdoctor.matrix-verify/1", "holds": True, "mismatches": []})


def test_a_version_that_the_index_has_and_the_facts_lack_is_named(matrix_folder, index: FakeIndex, capsys):
    index.add_wheel("bitsandbytes", "0.47.0", members=MEMBERS)
    code, found = verify(capsys)
    assert code == 1
    assert found["mismatches"] == [
        {
            "kind": "version",
            "what": "bitsandbytes 0.47.0",
            "text": "on the index since 2026-01-02, not in the facts",
        }
    ]


def test_a_table_that_its_wheel_contradicts_is_named(matrix_folder, capsys):
    path = matrix_folder / "releases" / "bitsandbytes.json"
    path.write_text(path.read_text().replace('"126"', '"118"'))
    forget_what_was_loaded()
    code, found = verify(capsys)
    assert code == 1
    assert {m["what"] for m in found["mismatches"]} == {"bitsandbytes 0.46.1"}
    assert "platforms is recorded as" in found["mismatches"][0]["text"]


def test_a_row_whose_source_has_gone_is_named(matrix_folder, capsys):
    rows = ROW.format(n=1, filename=WHEEL) + ROW.format(n=2, filename="bitsandbytes-9.9-py3-none-any.whl")
    (matrix_folder / "quantization.toml").write_text(rows)
    forget_what_was_loaded()
    code, found = verify(capsys)
    assert code == 1
    assert [(m["kind"], m["what"]) for m in found["mismatches"]] == [("row", "BNB-2")]


def test_a_build_store_can_be_verified_instead(matrix_folder, index: FakeIndex, tmp_path, capsys):
    index.add_wheel("bitsandbytes", "0.48.0", members=MEMBERS)
    assert main(["matrix", "verify", "--store", str(tmp_path / "store")]) == 1
    assert "version bitsandbytes 0.48.0: on the index" in capsys.readouterr().out


def test_an_index_that_is_down_is_no_verdict(matrix_folder, index: FakeIndex, capsys):
    index.close()
    assert main(["matrix", "verify"]) == 3
    assert "cannot be reached" in capsys.readouterr().err


def test_a_fresh_reading_is_compared_field_by_field():
    recorded = {"cuda": "12.8", "date": "2026-01-01", "source": "wheel:a"}
    assert list(compare_facts("x", recorded, {"cuda": "12.8", "source": "wheel:b", "declared": {}})) == []
    (mismatch,) = compare_facts("x", recorded, {"cuda": "13.0"})
    assert mismatch.text == "cuda is recorded as '12.8', and is '13.0'"
    (mismatch,) = compare_facts("x", recorded, {"arch_list": ["sm_75"]})
    assert "is not recorded" in mismatch.text
    (mismatch,) = compare_facts("x", recorded, {"reason": "cut short"})
    assert "could not be read again: cut short" in mismatch.text


def test_only_rows_read_from_a_wheel_have_one():
    rows = {"A": {"source": "https://h"}, "B": {"source": f"wheel:{WHEEL}"}, "C": {}}
    assert wheels_of_rows(rows) == {"B": ("bitsandbytes", WHEEL)}
    with pytest.raises(Unavailable, match="row D"):
        wheels_of_rows({"D": {"source": "wheel:nonsense.whl"}})


def test_status_counts_dates_and_says_when_it_is_stale(matrix_folder, capsys):
    status = matrix_status(load_matrix(), datetime.date.today())
    assert status["rows"] == {"row": 1}
    assert status["package_facts"]["packages"] == 1
    made = {"date": status["package_facts"]["date"], "releases": 1}
    assert status["generated"] == {"bitsandbytes": made, "sizes": made}
    assert status["stale"] is False
    later = matrix_status(load_matrix(), datetime.date.today() + datetime.timedelta(days=100))
    assert later["stale"] is True
    assert "100 days old: run `envdoctor matrix update`" in told(status_document(later))
    assert main(["matrix", "status"]) == 0
    assert "1 packages, 1 releases" in capsys.readouterr().out


def test_status_without_package_facts_says_why(tmp_path, monkeypatch):
    forget_what_was_loaded()
    monkeypatch.setenv("ENVDOCTOR_SNAPSHOT", str(tmp_path / "none"))
    status = matrix_status(Matrix({}, "v", "2026-01-01", tmp_path))
    assert status["stale"] is None
    assert "missing" in told(status_document(status))


def test_show_lists_all_rows_or_tells_one_in_full(matrix_folder, capsys):
    assert main(["matrix", "show"]) == 0
    assert capsys.readouterr().out == "BNB-1  row  a summary\n"
    assert main(["matrix", "show", "BNB-1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("BNB-1 (row)\n")
    assert re.search(f"source +wheel:{re.escape(WHEEL)}", shown)
    assert main(["matrix", "show", "BNB-1", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["kind"] == "row"


def test_an_unknown_row_is_the_callers_mistake(matrix_folder, capsys):
    assert main(["matrix", "show", "bnb-11"]) == 2
    assert "nearest: BNB-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["status", "X"], ["update", "--releases", "x"], ["update", "--package", "../x"]]
)
def test_calls_that_make_no_sense(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["matrix", *arguments, "--index-url", "http://127.0.0.1:9/simple"]) == 2


def test_a_row_is_told_with_its_nested_parts():
    row = {"id": "A", "when": {"torch": ">=2"}, "remedies": [{"text": "x", "pins": {"a": "b"}}]}
    assert told(row_document([("row", row)])) == (
        "A (row)\nwhen.torch         >=2\nremedies.1.text    x\nremedies.1.pins.a  b\n"
    )


def told(document: Document) -> str:
    return draw(document, Format.TEXT)


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_is_drawn_on_a_terminal_alone(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    drawn = Progress(argparse.Namespace(quiet=False))
    drawn.step(1, 2, "torch")
    drawn.end()
    assert "##########           1/2 torch" in terminal.text
    assert terminal.text.endswith("\r\x1b[K")
    quiet = Terminal()
    monkeypatch.setattr("sys.stderr", quiet)
    Progress(argparse.Namespace(quiet=True)).step(1, 2, "torch")
    assert quiet.text == ""


@pytest.mark.network
def test_the_shipped_facts_lack_nothing_older_than_themselves(tmp_path):
    """Every version that the index has from before the facts' own day is among them."""
    from envdoctor.harvest.index_settings import read_index_settings
    from envdoctor.harvest.refresh import fetcher_for
    from envdoctor.harvest.verify import Verifier, missing_versions
    from envdoctor.matrix.status import crawled_packages

    snapshot = load_snapshot(load_matrix().folder)
    settings = read_index_settings()
    known = {package.name: package.versions for package in crawled_packages(snapshot)}
    with fetcher_for(settings) as fetcher:
        missing = list(missing_versions(Verifier(fetcher, settings.url).pages(known), known))
    assert [m for m in missing if m.text.removeprefix("on the index since ")[:10] < snapshot.date] == []


def test_an_update_of_nothing_new_writes_nothing(matrix_folder, index: FakeIndex, tmp_path):
    store = PackageStore(tmp_path / "store")
    with index.fetcher() as fetcher:
        assert Updater(fetcher, index.url, store).run(["bitsandbytes"]).read == 0


@pytest.mark.parametrize(("recorded", "holds"), [("wheel", True), ("axle", False)])
def test_a_sample_of_what_was_read_of_releases_is_read_again(
    matrix_folder, index: FakeIndex, capsys, recorded: str, holds: bool
):
    code, foreign = b"from numpy import zeros\ndef turn(wheel): ...\n", frozenset({"seqeval:zeros"})
    index.add_wheel("seqeval", "1.0", members={"seqeval/__init__.py": code})
    names = ({"seqeval:turn"}, {"seqeval:turn", "seqeval:zeros"})  # what the first imports, the second makes
    told = [
        Interface(names=frozenset(made), keywords=frozenset({"turn:~1", f"turn:{name}"}), foreign=foreign)
        for name, made in zip((recorded, "other"), names, strict=True)
    ]
    record = {
        "library": "seqeval",
        "root": "seqeval",
        **encode(dict(zip(("1.0", "2.0"), told, strict=True)), "seqeval"),
    }
    (matrix_folder / "releases" / "interfaces").mkdir()
    path = matrix_folder / "releases" / "interfaces" / "seqeval.tables"
    path.write_bytes(pack_tables(record | {"versions": ["1.0"]}))
    load_record.cache_clear()
    exit_code, found = verify(capsys)
    assert (exit_code == 0) is holds
    assert [(m["kind"], m["what"]) for m in found["mismatches"]] == (
        [] if holds else [("sample", "interface of seqeval 1.0")]
    )
    asked = len(index.requests)
    assert verify(capsys, "--sample", "3", "--seed", "7") == (exit_code, found)
    assert index.paths()[asked:] == ["/simple/seqeval/", "/files/seqeval-1.0-py3-none-any.whl"]
    load_record.cache_clear()


def test_a_seed_that_was_not_told_is_said(matrix_folder, capsys):
    assert main(["matrix", "verify"]) == 0
    seed = re.search(r"drawn by --seed (\d+)", capsys.readouterr().err)[1]
    assert main(["matrix", "verify", "--sample", "1", "--seed", seed]) == 0
    assert capsys.readouterr().out == "what was drawn holds\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "--sample", "3"], "go with verify"),
        (["verify", "--sample", "0"], "at least one"),
        (["verify", "--sample", "3", "--all"], "reads only what it draws"),
        (["verify", "--package", "torch", "--seed", "3"], "go with verify of all packages"),
    ],
)
def test_what_a_draw_goes_with(arguments, said, capsys):
    assert main(["matrix", *arguments]) == 2
    assert said in capsys.readouterr().err
