"""Hostile environments: nothing is torn, lost, run or hidden; right, or exit 3 with the part named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from environments_hostile import HOSTILE, Hostile, Place

from envdoctor.cli import main


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return every entry below a folder with what changes when something touches it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        told = path.lstat()
        found[os.fsencode(path)] = (told.st_mode, told.st_size, told.st_mtime_ns)
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


def test_there_are_sixty() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_each_is_answered_right_or_its_part_is_named(place, monkeypatch, capsys, hostile: Hostile) -> None:
    hostile.make(place)
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)
    before = snapshot(place.folder)
    status = main(["diagnose", "--format", "json", "--python", place.python or ""])
    out, err = capsys.readouterr()
    diagnosis = json.loads(out)
    assert err == ""
    assert snapshot(place.folder) == before
    broken = [check for check in diagnosis["checks"] if check["outcome"] == "crashed"]
    assert {check["rule"] for check in broken} <= {"UNREAD"}
    assert set(diagnosis["facts"].get("unread", ())) == ({hostile.unread} if hostile.unread else set())
    errors = [finding["id"] for finding in diagnosis["findings"] if finding["severity"] == "error"]
    assert status == (1 if errors else 3 if hostile.unread else 0)
    assert hostile.holds(diagnosis["facts"])
    assert "\x1b" not in out
