"""`envdoctor smoke` as users call it."""

from __future__ import annotations

import json
import os
import sys

import pytest

from envdoctor.cli import main
from envdoctor.target.stack import active_python


def test_the_cpu_run_answers_in_json(faulty, capsys):
    code = main(
        ["smoke", "--python", faulty, "--device", "cpu", "--select", "fault.none", "--format", "json"]
    )
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert code == 0
    assert report["device"] == "cpu"
    assert [(r["op"], r["outcome"]) for r in report["results"]] == [("fault.none", "passed")]
    assert captured.err == ""


def test_a_plugin_that_does_not_load_is_told(faulty, capsys, monkeypatch, tmp_path):
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1\n"
    )
    (tmp_path / "broken-1.dist-info" / "entry_points.txt").write_text(
        "[envdoctor.smokes]\nx = nowhere:register\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    arguments = ["smoke", "--python", faulty, "--device", "cpu", "--select", "fault.none", "--format", "json"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    (trouble,) = json.loads(captured.out)["troubles"]
    assert trouble.startswith("entry point x: ModuleNotFoundError")
    assert trouble in captured.err


def test_a_failed_smoke_is_exit_1(faulty, capsys):
    arguments = ["smoke", "--python", faulty, "--device", "cpu", "--select", "fault.wrong,fault.none"]
    assert main(arguments) == 1
    assert "1 passed, 1 failed" in capsys.readouterr().out


def test_ops_are_listed_and_chosen(faulty, capsys):
    assert main(["smoke", "--python", faulty, "--list", "--select", "matmul"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["op", "set", "proves"]
    assert all(line.startswith("matmul.") for line in lines[1:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--select", "nothing"], "--select nothing: no such op"),
        (["--device", "gpu"], "--device gpu: cpu or the number of a card"),
        (["--python", "/nowhere/python"], "/nowhere/python: no such interpreter"),
    ],
)
def test_an_unusable_call_is_exit_2_in_one_line(arguments, words, capsys):
    assert main(["smoke", *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_without_torch_nothing_is_proved_on_the_cpu(tmp_path, monkeypatch, capsys):
    bare = tmp_path / "bin" / "python"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert main(["smoke", "--python", str(bare), "--device", "cpu", "--select", "matmul"]) == 3
    assert "nothing could be run: torch not installed" in capsys.readouterr().err
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["smoke", "--python", str(bare), "--select", "matmul"]) == 0
    assert "no GPU: this machine shows none" in capsys.readouterr().out


def test_the_active_environment_is_examined(tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert active_python() == str(python)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "nowhere"))
    assert active_python() == sys.executable
