"""The same request on the same facts is answered from what was kept, and anything else is solved anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from envdoctor import api
from envdoctor.cli import main
from envdoctor.solve.answer import PinSet

ON = ["--python-version", "3.11", "--platform", "x86_64-manylinux_2_35", "--offline"]


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the requests that were solved, and not read from what is kept."""
    found: list[str] = []
    pin = api.pin

    def noted(names: Sequence[str], **more: Any) -> PinSet:
        found.append(" ".join(names))
        return pin(names, **more)

    monkeypatch.setattr(api, "pin", noted)
    return found


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["pin", *words, *ON])
    return code, *capsys.readouterr()


def test_a_second_answer_is_the_first(capsys: pytest.CaptureFixture[str], solved: list[str]) -> None:
    first = told(capsys, "peft<0.12", "idna")
    assert told(capsys, "peft<0.12", "idna") == first
    assert solved == ["peft<0.12 idna"]


@pytest.mark.parametrize("other", [["--gpu", "T4"], ["--format", "json"], ["--exclude-newer", "2025-01-01"]])
def test_other_words_are_another_question(
    capsys: pytest.CaptureFixture[str], solved: list[str], other: list[str]
) -> None:
    told(capsys, "idna")
    told(capsys, "idna", *other)
    assert len(solved) == 2


def test_a_file_counts_by_what_it_says(
    capsys: pytest.CaptureFixture[str], solved: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "requirements.txt"
    for text in ("idna>3\n", "idna>3\n", "idna>3 # see https://example.com\n", "idna>3.5\n"):
        file.write_text(text)
        told(capsys, "-r", str(file))
    assert len(solved) == 2


@pytest.mark.parametrize("line", ["-r other.txt", "idna @ https://example.com/idna-3.0.tar.gz", "idna>${N}"])
def test_what_leads_elsewhere_is_not_kept(
    capsys: pytest.CaptureFixture[str], solved: list[str], tmp_path: Path, line: str
) -> None:
    (tmp_path / "other.txt").write_text("idna\n")
    (tmp_path / "requirements.txt").write_text(f"certifi\n{line}\n")
    for _ in range(2):
        told(capsys, "-r", str(tmp_path / "requirements.txt"))
    assert len(solved) == 2


def test_newer_facts_are_asked_anew(
    capsys: pytest.CaptureFixture[str],
    solved: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told(capsys, "idna")
    releases = tmp_path / "data" / "envdoctor" / "releases"
    releases.mkdir()
    (releases / "imports.json").write_text('{"generated": "2030-01-01", "facts": {}}')
    told(capsys, "idna")
    assert len(solved) == 2


def test_what_was_spoilt_or_cannot_be_written_is_solved_anew(
    capsys: pytest.CaptureFixture[str], solved: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = told(capsys, "idna")
    (kept,) = (tmp_path / "data" / "envdoctor" / "answers").iterdir()
    assert os.name == "nt" or kept.stat().st_mode & 0o777 == 0o600
    kept.write_text('{"asked": ["spoilt"')
    assert told(capsys, "idna") == first
    monkeypatch.setenv("XDG_DATA_HOME", str(kept))
    assert told(capsys, "idna") == first
    assert len(solved) == 3
