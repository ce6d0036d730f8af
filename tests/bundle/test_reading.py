from __future__ import annotations

import json
import tempfile
import tracemalloc
from functools import cache
from pathlib import Path

import pytest
from hostile_archives import GOOD, hostile, planned, sound

from envdoctor.bundling import read_bundle, read_contents
from envdoctor.errors import InputError

archives = cache(hostile)
RECORD = Path(__file__).with_name("refusals.tsv")
"""Why each planned archive is refused; `python tests/bundle/test_reading.py` writes it anew."""


def test_a_sound_bundle_is_read(tmp_path):
    path = tmp_path / "b.zip"
    path.write_bytes(sound())
    contents = read_contents(path)
    assert contents.facts["schema"] == "envdoctor.facts/1"
    assert contents.logs == {"01-train.log": "Traceback\n"}
    assert contents.report == "# report\n"
    assert read_bundle(path).origin == "paste"


def refused(path: Path, content: bytes) -> str | None:
    path.write_bytes(content)
    try:
        read_bundle(path)
    except InputError as error:
        return str(error)
    return None


def test_three_hundred_hostile_archives_are_refused_in_one_line(tmp_path):
    path = tmp_path / "b.zip"
    messages = {name: refused(path, content) for name, content in archives()}
    assert len([m for m in messages.values() if m]) >= 300
    for name, message in messages.items():
        if message:
            assert message.startswith(str(path)), name
            assert "\n" not in message, name


def refusals(path: Path) -> list[str]:
    """Return the record as it would be written today."""
    told = ((name, refused(path, content) or "read") for name, content in planned())
    return [
        f"{name}\t{why.removeprefix(f'{path}: ')}".encode("ascii", "replace").decode() for name, why in told
    ]


def test_each_planned_archive_is_refused_for_what_is_wrong_with_it(tmp_path):
    assert refusals(tmp_path / "b.zip") == RECORD.read_text(encoding="utf-8").splitlines()


def test_what_is_not_refused_reads_as_what_was_packed(tmp_path):
    # Noise may hit bytes that nothing depends on, such as the time in a local header.
    path = tmp_path / "b.zip"
    for name, content in archives():
        if refused(path, content) is None:
            assert name.split()[0] in ("noise", "directory"), name
            contents = read_contents(path)
            assert contents.report.encode() == GOOD["report.md"], name
            assert contents.facts == json.loads(GOOD["facts.json"]), name


def test_bombs_are_refused_without_being_unpacked(tmp_path):
    bombs = [content for name, content in archives() if "bomb" in name or "claims" in name]
    tracemalloc.start()
    for content in bombs:
        assert refused(tmp_path / "b.zip", content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20


def test_no_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_bundle(tmp_path / "none.zip")
    with pytest.raises(InputError, match="not a file"):
        read_bundle(tmp_path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        RECORD.write_text("\n".join(refusals(Path(folder) / "b.zip")) + "\n", encoding="utf-8")
