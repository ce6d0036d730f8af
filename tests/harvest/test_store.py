"""The store of package facts: replaced whole or not at all, one writer at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from envdoctor.errors import Unavailable
from envdoctor.files import replace_file
from envdoctor.harvest.store import SCHEMA, PackageStore

RECORD = {"schema": SCHEMA, "name": "demo", "fetched": "2026-01-01", "releases": {"1.0": {"files": []}}}


@pytest.fixture
def store(tmp_path) -> PackageStore:
    return PackageStore(tmp_path)


def test_what_is_written_is_read(store):
    store.write("demo", RECORD)
    assert store.read("demo") == RECORD
    assert store.names() == ["demo"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "other/1"}', f'{{"schema": "{SCHEMA}", "releases": []}}']
)
def test_a_damaged_record_is_as_good_as_none(store, text):
    (store.folder / "demo.json").write_text(text)
    assert store.read("demo") is None
    assert store.read("absent") is None


def test_a_full_disk_leaves_the_former_record(store, monkeypatch):
    store.write("demo", RECORD)

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(Unavailable, match=r"demo\.json: cannot be written: No space left on device"):
        store.write("demo", {**RECORD, "fetched": "2026-02-02"})
    assert store.read("demo") == RECORD
    assert [path.name for path in store.folder.iterdir()] == ["demo.json"]


def test_a_folder_that_cannot_be_written_is_unavailable(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(Unavailable, match="cannot be written"),
        PackageStore(tmp_path / "file" / "packages").locked(),
    ):
        pass


def test_a_second_writer_is_refused_at_once(store):
    with store.locked():
        code = (
            "from pathlib import Path\nimport sys\nfrom envdoctor.harvest.store import PackageStore\n"
            "with PackageStore(Path(sys.argv[1])).locked(): pass"
        )
        second = subprocess.run(
            [sys.executable, "-c", code, str(store.folder)], capture_output=True, text=True
        )
    assert "another update is running" in second.stderr
    with store.locked():
        pass


def test_nothing_of_anybody_else_is_removed_or_replaced(store):
    theirs = {
        ".bashrc": "alias",
        ".env.local": "KEY=1",
        ".demo.json.x7f3": "{",
        "demo.json": '{"name": "demo"}',
    }
    for name, text in theirs.items():
        (store.folder / name).write_text(text)
    with store.locked(), pytest.raises(Unavailable, match="no record of a package"):
        store.write("demo", RECORD)
    assert {name: (store.folder / name).read_text() for name in theirs} == theirs


def test_a_file_is_replaced_with_ordinary_permissions(tmp_path):
    replace_file(tmp_path / "a.json", json.dumps(RECORD))
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_file_in_no_folder_is_unavailable(tmp_path):
    with pytest.raises(Unavailable, match="cannot be written"):
        replace_file(tmp_path / "none" / "a.json", b"")
