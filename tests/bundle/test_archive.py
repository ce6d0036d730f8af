from __future__ import annotations

import io
import os
import stat
import zipfile

import pytest

from envdoctor.bundling.archive import pack
from envdoctor.errors import InputError, Unavailable
from envdoctor.files import write_new_file

FILES = {"report.md": b"# r\n", "logs/01-a.log": b"x" * 5000, "MANIFEST.json": b"{}"}


def test_the_same_files_give_the_same_bytes():
    assert pack(FILES) == pack(dict(reversed(FILES.items())))
    with zipfile.ZipFile(io.BytesIO(pack(FILES))) as archive:
        assert archive.namelist() == sorted(FILES)
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {i.external_attr >> 16 for i in archive.infolist()} == {0o100600}


def test_only_the_owner_may_read_what_is_written(tmp_path):
    path = tmp_path / "b.zip"
    write_new_file(path, b"content")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["b.zip"]


def test_nothing_is_overwritten_without_force(tmp_path):
    path = tmp_path / "b.zip"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match="exists already"):
        write_new_file(path, b"new")
    assert path.read_bytes() == b"mine"
    write_new_file(path, b"new", force=True)
    assert path.read_bytes() == b"new"


def test_a_link_counts_as_a_file_and_is_followed_when_forced(tmp_path):
    target = tmp_path / "target"
    (tmp_path / "b.zip").symlink_to(target)
    with pytest.raises(InputError, match="exists already"):
        write_new_file(tmp_path / "b.zip", b"new")
    write_new_file(tmp_path / "b.zip", b"new", force=True)
    assert (tmp_path / "b.zip").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(Unavailable, match="cannot be written"):
        write_new_file(tmp_path / "none" / "b.zip", b"x")


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(Unavailable, match="No space left"):
        write_new_file(tmp_path / "b.zip", b"x")
    assert os.listdir(tmp_path) == []
