"""The command as scripts call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from clusters import cluster

from envdoctor.cli import main


def write(folder: Path, count: int = 3) -> Path:
    for name, facts in cluster(count).items():
        (folder / f"{name}.json").write_text(json.dumps(facts))
    return folder


def test_facts_that_nodes_wrote_are_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert main(["fleet", "--facts", str(tmp_path), "--select", "XID", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["nodes"], told["groups"][0]["nodes"], told["exit_code"]) == (3, "node[001-003]", 0)
    assert err == ""


def test_a_rank_that_wrote_garbage_is_a_node_without_answer(tmp_path: Path) -> None:
    (write(tmp_path) / "node004.json").write_text('{"schema": "envdoctor.facts/1", "gpus"')
    (tmp_path / "node005.json").mkdir()
    out = tmp_path / "answer"
    where = ["--facts", str(tmp_path), "--format", "json", "-o", str(out)]
    assert main(["fleet", *where, "--select", "XID"]) == 1
    assert [one["nodes"] for one in json.loads(out.read_text())["unreached"]] == ["node004", "node005"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--facts", "{tmp}/none"], "No such file"),
        (["--facts", "{tmp}"], "no *.json there"),
        (["--hosts", "node[1-"], "--hosts node[1-"),
        (["--hosts", "node1", "--worker", "telnet"], "--worker telnet: one of ssh"),
        (["--kubernetes"], "needs --image"),
        (["--facts", "{tmp}", "--baseline", "{tmp}/none.json"], "none.json: cannot be read: No such file"),
    ],
)
def test_an_unusable_call_is_one_line_and_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", *(a.format(tmp=tmp_path) for a in arguments)]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_a_selection_of_no_check_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "--facts", str(write(tmp_path)), "--select", "NOT-A-CHECK"]) == 2
    assert "no check has this id" in capsys.readouterr().err


def test_no_way_to_the_nodes_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet"]) == 2
    assert "--hosts --slurm --kubernetes --ray --facts is required" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "module", "words"),
    [
        (["--hosts", "node[1-2]"], "ClusterShell", "pip install 'envdoctor-gpu[fleet]'"),
        (["--ray", "auto"], "ray", "pip install 'envdoctor-gpu[ray]'"),
    ],
)
def test_a_missing_engine_is_3_and_names_the_extra(
    arguments: list[str],
    module: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["fleet", *arguments]) == 3
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("option", "program"), [("--slurm", "sinfo"), ("--kubernetes", "kubectl")])
def test_a_missing_launcher_is_3(
    option: str,
    program: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    assert main(["fleet", option, "--image", "stack:1"]) == 3
    assert capsys.readouterr().err.startswith(f"envdoctor: {program}: cannot be run: ")


def test_clustershells_own_worker_runs_one_probe_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--hosts", "node[1-3]", "--worker", "exec", "--python", sys.executable, "--select", "XID"]
    assert main(["fleet", *arguments, "--format", "json"]) == 0
    assert [g["nodes"] for g in json.loads(capsys.readouterr().out)["groups"]] == ["node[1-3]"]
