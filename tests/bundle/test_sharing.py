from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor.bundling import Redactor
from envdoctor.bundling.sharing import redact_facts
from envdoctor.cli import main
from envdoctor.facts import Environment, Facts, Observed
from envdoctor.facts.model import Driver

FACTS = {
    "schema": "envdoctor.facts/1",
    "origin": "probe",
    "host": {"hostname": {"value": "falcon", "source": "uname"}},
    "variables": {
        "HF_HOME": "/scratch/mkowalski/hf",
        "HF_TOKEN": "zq81kfLm20xPQ7",
        "NCCL_SOCKET_IFNAME": "eth0",
    },
}
TOLD = ("falcon", "kite", "mkowalski", "zq81kfLm20xPQ7")


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    for name, token in (("falcon", "zq81kfLm20xPQ7"), ("kite", "otherKx77Qz1")):
        variables = {**FACTS["variables"], "HF_TOKEN": token}
        (tmp_path / f"{name}.json").write_text(json.dumps({**FACTS, "variables": variables}))
    (tmp_path / "heron.json").write_text("no facts of mkowalski on heron")
    return tmp_path


@pytest.mark.parametrize("format_", ["text", "json", "markdown", "html"])
def test_a_shared_answer_of_a_fleet_names_no_node_and_no_person(nodes, format_, capsys):
    assert main(["fleet", "--facts", str(nodes), "--share", "--format", format_]) == 1
    shown = capsys.readouterr().out
    assert [word for word in (*TOLD, "heron", "otherKx77Qz1") if word in shown] == []
    assert "host-" in shown


def test_nodes_of_a_shared_answer_fold_as_nodes_do(tmp_path, capsys):
    for number in (1, 2, 3):
        (tmp_path / f"falcon{number}.json").write_text(json.dumps(FACTS))
    main(["fleet", "--facts", str(tmp_path), "--share", "--format", "json"])
    assert [g["nodes"] for g in json.loads(capsys.readouterr().out)["groups"]] == ["<host-[1-3]>"]


def test_shared_facts_of_this_machine_tell_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HF_HOME", "/scratch/mkowalski/hf")
    monkeypatch.setenv("USER", "mkowalski")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    main(["probe", "--share", "-o", str(tmp_path / "facts.json")])
    told = json.loads((tmp_path / "facts.json").read_text())
    assert told["schema"] == "envdoctor.facts/1"
    assert "mkowalski" not in json.dumps(told)
    assert told["variables"]["NCCL_SOCKET_IFNAME"] == "eth0"
    assert main(["diagnose", "--from", str(tmp_path / "facts.json"), "--format", "json"]) in (0, 1, 3)


def test_a_shared_diagnosis_redacts_what_it_quotes(tmp_path, capsys):
    text = "Traceback (most recent call last):\nRuntimeError: /scratch/mkowalski/x: token=zq81kfLm20xPQ7\n"
    (tmp_path / "mkowalski.log").write_text(text)
    main(["diagnose", "--from", str(tmp_path / "mkowalski.log"), "--share", "--format", "json"])
    shown = capsys.readouterr().out
    assert "RuntimeError" in shown
    assert [word for word in TOLD if word in shown] == []


def test_a_name_is_hidden_before_the_place_that_tells_it():
    facts = Facts(
        driver=Driver(nvml=Observed("katharina may not ask", "NVML")),
        environment=Environment(executable=Observed("/home/katharina/venv/bin/python", "probe")),
    )
    assert redact_facts(facts, Redactor()).driver.nvml.get() == "<user-1> may not ask"
