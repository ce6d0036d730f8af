"""Messages read out of sources, filed, and found again by the line that a user pastes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_index import FakeIndex, Fault

from envdoctor.diagnosis import diagnose_facts, read_facts
from envdoctor.fact_files import find_folder
from envdoctor.harvest.atlas import chosen_of, encode_atlas
from envdoctor.harvest.messages import HOLE, scan_messages
from envdoctor.matrix.atlas import Atlas, load_atlas
from envdoctor.matrix.load import load_matrix

SOURCE = """
class Engine:
    def verify(self, heads, tp):
        if heads % tp != 0:
            raise ValueError(
                f"Total number of gizmo wheels ({heads}) must be divisible by turning circle length ({tp})."
            )
        try:
            import gizmo
        except ImportError:
            raise ImportError("The gizmo kernels are needed for this, install them with pip.")
        logger.warning("Falling back to %s because %d blocks are free on this device", "slow", 3)
        assert heads > 0, "The number of heads must never be zero here"
"""
LINE = "ValueError: Total number of gizmo wheels (14) must be divisible by turning circle length (4)."


def messages(source: str) -> dict[str, tuple[str, str, str]]:
    return {m.template: (m.kind, m.function, m.guard) for m in scan_messages(source)}


def atlas_of(folder: Path) -> Atlas:
    rows = [[m.template, m.kind, m.function, m.guard] for m in scan_messages(SOURCE)]
    (folder / "releases").mkdir(exist_ok=True)
    found = {"servit": {v: {"servit/engine.py": rows} for v in ("0.2.0", "0.3.1")} | {"0.4.0": {}}}
    (folder / "releases" / "atlas.bin").write_bytes(encode_atlas(found))
    atlas = load_atlas(folder)
    assert atlas is not None
    return atlas


def test_messages_keep_their_holes_place_and_condition() -> None:
    found = messages(SOURCE)
    heads = f"Total number of gizmo wheels ({HOLE}) must be divisible by turning circle length ({HOLE})."
    assert found[heads] == ("ValueError", "Engine.verify", "heads % tp != 0")
    assert (
        found["The gizmo kernels are needed for this, install them with pip."][2] == "ImportError is raised"
    )
    assert f"Falling back to {HOLE} because {HOLE} blocks are free on this device" in found
    assert found["The number of heads must never be zero here"][0] == "AssertionError"


def test_a_file_of_another_python_has_no_messages() -> None:
    assert messages("print 'hello'") == {}


def test_what_is_not_read_again_stays_as_it_is_filed(tmp_path: Path) -> None:
    kept = atlas_of(tmp_path)
    rows = [
        ["The turning circle of {} is far too small for it".replace("{}", HOLE), "ValueError", "turn", ""]
    ]
    other = {"0.1": {"circle/turn.py": rows}}
    both = encode_atlas({"circle": other}, kept)
    assert both == encode_atlas({"circle": other, **_as_found(kept)})
    assert encode_atlas({"servit": {}}, kept) != encode_atlas({}, kept) == kept.data[:]


def _as_found(kept: Atlas) -> dict[str, dict[str, dict[str, list[list[str]]]]]:
    (name, versions) = kept.libraries[0]
    found: dict[str, dict[str, list[list[str]]]] = {version: {} for version in versions}
    for template, _, kind, file, function, guard, spans in kept.entries():
        for first, last in spans:
            for version in versions[first : last + 1]:
                found[version].setdefault(file, []).append([template, kind, function, guard])
    return {name: found}


def test_a_pasted_line_is_found_with_its_releases(tmp_path: Path) -> None:
    (origin,) = atlas_of(tmp_path).find(LINE.partition(": ")[2])
    assert (origin.library, origin.spans, origin.newest) == ("servit", (("0.2.0", "0.3.1"),), "0.4.0")
    assert origin.guard == "heads % tp != 0"


@pytest.mark.parametrize(
    "line",
    [
        "Total number of attention layers (14) must be divisible by turning circle length (4).",
        "must be divisible",
        "",
        "x" * 5000,
        "Total number of gizmo wheels " * 200,
    ],
)
def test_other_lines_are_not(tmp_path: Path, line: str) -> None:
    assert atlas_of(tmp_path).find(line) == []


def test_the_same_releases_give_the_same_bytes(tmp_path: Path) -> None:
    atlas_of(tmp_path)
    first = (tmp_path / "releases" / "atlas.bin").read_bytes()
    atlas_of(tmp_path)
    assert (tmp_path / "releases" / "atlas.bin").read_bytes() == first


@pytest.mark.parametrize("damage", [b"", b"junk", b"envdoctor-atlas/1\n\xff\xff\xff\xff\xff\xff\xff\xff"])
def test_a_damaged_atlas_is_none(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "atlas.bin").write_bytes(damage)
    assert load_atlas(tmp_path) is None


def test_the_last_release_of_each_minor_is_read() -> None:
    assert chosen_of(["0.10.0", "0.9.1", "0.9.0", "1.0.0", "0.10.2"]) == ["0.9.1", "0.10.2", "1.0.0"]


def test_an_unexplained_line_is_answered_by_the_release_that_says_it(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(find_folder(), tmp_path / "matrices"))
    atlas_of(folder)
    head = 'Traceback (most recent call last):\n  File "a.py", line 1, in b\n'
    (tmp_path / "log.txt").write_text(f"{head}{LINE}\n")
    matrix = load_matrix(folder)
    facts = read_facts([str(tmp_path / "log.txt")], None, matrix)
    (finding,) = diagnose_facts(facts, matrix, complete=False).findings
    assert finding.id == "RAISED-BY-LIBRARY"
    assert finding.summary.startswith("servit stops because heads is no multiple of tp: ValueError")
    assert "0.2.0 to 0.3.1 (engine.py, Engine.verify)" in finding.cause
    assert finding.remedies[-1].pins == {"servit": ">0.3.1"}


@pytest.fixture
def beside(index: FakeIndex, tmp_path: Path) -> Path:
    """A folder with a matrix that holds nothing, beside an index with two releases of two libraries."""
    for library in ("packaging", "seqeval"):
        for version in ("23.0", "24.0"):
            index.add_wheel(library, version, members={f"{library}/engine.py": SOURCE.encode()})
    (tmp_path / "matrices" / "releases").mkdir(parents=True)
    return tmp_path


def write_records(index: FakeIndex, folder: Path, writer: str, *arguments: str) -> tuple[int, str]:
    """Run a writer on the index; return its exit code and the last line that it told."""
    places = {"ENVDOCTOR_MATRICES": str(folder / "matrices"), "XDG_CACHE_HOME": str(folder / "cache")}
    told = {**os.environ, **places, "PIP_INDEX_URL": index.url}
    command = [sys.executable, "-m", f"envdoctor.harvest.{writer}", *arguments]
    done = subprocess.run(command, env=told, capture_output=True, text=True)
    return done.returncode, done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize(
    ("writer", "library", "record"),
    [
        ("atlas", "packaging", "atlas.bin"),
        ("interface_reader", "seqeval", "interfaces/seqeval.tables"),
    ],
)
def test_without_a_release_that_cannot_be_read_nothing_is_written(
    index: FakeIndex, beside: Path, writer: str, library: str, record: str
) -> None:
    written = beside / "matrices" / "releases" / record
    index.faults[f"/files/{library}-23.0-py3-none-any.whl"] = Fault(body=b"no zip at all")
    code, told = write_records(index, beside, writer, library)
    assert (code, written.exists()) == (3, False)
    assert f"{library} 23.0 ({library}-23.0-py3-none-any.whl: File is not a zip file)" in told
    assert "--without LIBRARY==RELEASE" in told
    assert write_records(index, beside, writer, library, "--without", f"{library}==23.0")[0] == 0
    assert written.exists()
    index.faults.clear()
    assert write_records(index, beside, writer, library) == (0, f"{library}: 2 releases")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("packagin==23.0", "'packagin' is no library that is read; nearest: packaging"),
        ("packaging", "not written as"),
    ],
)
def test_what_is_left_out_must_be_a_release_of_what_is_read(
    index: FakeIndex, beside: Path, argument: str, said: str
) -> None:
    code, told = write_records(index, beside, "atlas", "--without", argument)
    assert code == 2
    assert said in told
