from __future__ import annotations

import json
import zipfile

import pytest

from envdoctor.cli import main

PASTE = """PyTorch version: 2.6.0+cu124
Python version: 3.11.9 (main)
Nvidia driver version: 570.86.10
GPU 0: NVIDIA GeForce RTX 5090
"""
LOG = (
    "HF_TOKEN=hf_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h\nTraceback (most recent call last):\nRuntimeError: boom\n"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paste.txt").write_text(PASTE)
    (tmp_path / "train.log").write_text(LOG)
    return tmp_path


def test_a_bundle_is_written_and_read_back(here, capsys):
    code = main(
        ["bundle", "--from", "paste.txt", "--log", "train.log", "--for", "transformers", "-o", "b.zip"]
    )
    assert code == 0
    told = capsys.readouterr().out
    assert told.startswith("Written      b.zip\nReplaced     ")
    assert "https://github.com/huggingface/transformers/issues/new?template=bug-report.yml" in told
    with zipfile.ZipFile(here / "b.zip") as archive:
        assert archive.namelist() == [
            "MANIFEST.json",
            "diagnosis.json",
            "facts.json",
            "logs/01-train.log",
            "report.md",
        ]
    assert main(["diagnose", "--from", "b.zip", "--format", "json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["schema"] == "envdoctor.diagnosis/1"


def test_the_preview_shows_what_would_leave_and_writes_nothing(here, capsys):
    assert main(["bundle", "--from", "paste.txt", "--log", "train.log", "--preview"]) == 0
    shown = capsys.readouterr().out
    assert "===== report.md (" in shown
    assert "===== MANIFEST.json (" in shown
    assert "<huggingface-token-1>" in shown
    assert "hf_aB3d" not in shown
    assert sorted(p.name for p in here.iterdir()) == ["paste.txt", "train.log"]


def test_the_preview_is_what_is_written(here, capsys):
    main(["bundle", "--from", "paste.txt", "--preview", "--format", "json"])
    contents = json.loads(capsys.readouterr().out)["contents"]
    main(["bundle", "--from", "paste.txt", "-o", "b.zip"])
    with zipfile.ZipFile(here / "b.zip") as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == contents


def test_json_stands_alone_on_stdout(here, capsys):
    assert main(["bundle", "--from", "paste.txt", "--for", "vllm", "--format", "json", "-o", "b.zip"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "envdoctor.bundle/1"
    assert told["path"] == "b.zip"
    with zipfile.ZipFile(here / "b.zip") as archive:
        assert told["files"] == {entry.filename: entry.file_size for entry in archive.infolist()}
    assert "Before submitting a new issue..." in told["to_fill"]


def test_an_existing_file_is_kept_without_force(here, capsys):
    (here / "b.zip").write_text("mine")
    assert main(["bundle", "--from", "paste.txt", "-o", "b.zip"]) == 2
    assert capsys.readouterr().err == "envdoctor: b.zip: exists already (--force replaces a file)\n"
    assert (here / "b.zip").read_text() == "mine"
    assert main(["bundle", "--from", "paste.txt", "-o", "b.zip", "--force"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--for", "nobody"], "--for nobody: no tracker is known of it"),
        (["--log", "none.log"], "none.log: cannot be read: No such file or directory"),
        (["--from", "none.txt"], "none.txt: cannot be read: No such file or directory"),
    ],
)
def test_an_unusable_call_is_refused_in_one_line(here, capsys, arguments, message):
    assert main(["bundle", "--from", "paste.txt", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
