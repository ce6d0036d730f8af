from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from environments import install, make_venv
from fake_nvml import H200, FakeNvml

from envdoctor.cli import main
from envdoctor.facts import Observed, Unknown, from_json, to_json
from envdoctor.probes import PROBES, read_machine
from envdoctor.probes.machine import Machine
from envdoctor.probes.reading import Probe
from envdoctor.probes.travel import build_zipapp

PYTHONS = sorted((Path.home() / ".pyenv/versions").glob("3.*/bin/python"))
TRAVELS = [path for path in PYTHONS if tuple(map(int, path.parts[-3].split("."))) >= (3, 8)]


def test_this_machines_facts_are_facts_of_ours():
    answer = read_machine()
    assert to_json(from_json(json.loads(json.dumps(answer)))) == answer


def test_a_recorded_h200_through_every_probe(tmp_path):
    install(make_venv(tmp_path / "venv"), "torch", "2.11.0", files=["torch/__init__.py"])
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  x\n"
    )
    environ = {"CUDA_VISIBLE_DEVICES": "0", "LD_LIBRARY_PATH": "/nowhere"}
    machine = Machine(str(tmp_path / "venv"), str(tmp_path), environ, FakeNvml([H200, H200]))
    facts = from_json(read_machine(machine=machine))
    assert [gpu.name for gpu in facts.gpus.require()] == ["NVIDIA H200", "NVIDIA H200"]
    assert isinstance(facts.driver.version, Observed)
    assert (str(facts.driver.version.value), facts.driver.version.source) == (
        "570.86.10",
        "/proc/driver/nvidia/version",
    )
    assert str(facts.driver.user_version.require()) == "580.159.04"
    assert facts.variables["CUDA_VISIBLE_DEVICES"] == "0"


def test_a_machine_with_nothing_at_all(tmp_path):
    make_venv(tmp_path / "venv")
    facts = from_json(read_machine(machine=Machine(str(tmp_path / "venv"), str(tmp_path), {}, no_library)))
    assert facts.gpus == Observed((), "/sys/bus/pci/devices")
    assert facts.toolkits.require() == ()
    assert isinstance(facts.driver.version, Unknown)
    assert facts.environment.complete
    assert not facts.environment.distributions


def no_library(name):
    raise OSError(name)


def test_a_probe_that_breaks_or_hangs_leaves_a_reason_and_the_others_untouched():
    def broken(machine):
        raise RuntimeError("boom")

    def hanging(machine):
        time.sleep(30)
        return {}

    probes = (
        Probe("first", broken, 1.0, ("gpus", "driver.cuda")),
        Probe("second", hanging, 0.1, ("toolkits",)),
        Probe("third", lambda machine: {"variables": {"CC": "gcc"}}, 1.0, ()),
    )
    answer = read_machine(probes=probes)
    facts = from_json(answer)
    assert facts.gpus == Unknown("the first probe gave nothing: it broke: RuntimeError: boom")
    assert facts.driver.cuda == facts.gpus
    assert facts.toolkits == Unknown("the second probe gave nothing: no answer within 0.1 s")
    assert facts.variables == {"CC": "gcc"}
    assert facts.unread == {"first": "it broke: RuntimeError: boom", "second": "no answer within 0.1 s"}


def test_every_probe_owes_facts_that_exist(tmp_path):
    from envdoctor.probes.reading import failed

    for probe in PROBES:
        from_json({"schema": "envdoctor.facts/1", **failed(probe, "no reason")})


def test_the_command_prints_facts_and_nothing_else(tmp_path, capsys):
    make_venv(tmp_path / "venv", "3.10.4")
    assert main(["probe", "--python", str(tmp_path / "venv")]) == 0
    out, err = capsys.readouterr()
    assert from_json(json.loads(out)).environment.python.require() == "3.10.4"
    assert err == ""


def test_the_command_refuses_what_is_no_interpreter(capsys):
    assert main(["probe", "--python", "/nowhere/python"]) == 2
    assert capsys.readouterr().err == "envdoctor: --python: /nowhere/python: no such interpreter\n"


def test_the_travelling_file_is_the_same_bytes_each_time(tmp_path):
    build_zipapp(str(tmp_path / "one.pyz"))
    build_zipapp(str(tmp_path / "two.pyz"))
    assert (tmp_path / "one.pyz").read_bytes() == (tmp_path / "two.pyz").read_bytes()


@pytest.mark.skipif(not TRAVELS, reason="no other interpreters under ~/.pyenv/versions")
@pytest.mark.parametrize("python", TRAVELS, ids=lambda path: path.parts[-3])
def test_the_travelling_file_tells_the_same_as_the_package(tmp_path, python):
    install(make_venv(tmp_path / "venv"), "torch", "2.11.0", ["filelock"], files=["torch/__init__.py"])
    build_zipapp(str(tmp_path / "probe.pyz"))
    environ = {**os.environ, "VIRTUAL_ENV": str(tmp_path / "venv")}
    command = [str(python), "-I", str(tmp_path / "probe.pyz")]
    ours = [sys.executable, "-m", "envdoctor.probes"]
    theirs, package = (
        json.loads(subprocess.run(one, env=environ, capture_output=True, check=True, timeout=60).stdout)
        for one in (command, ours)
    )
    for answer in (theirs, package):
        del (
            answer["host"]["memory_available_bytes"],
            answer["host"]["disk_free_bytes"],
            answer["host"]["time_s"],
        )
    assert theirs == package


@pytest.mark.skipif(not TRAVELS, reason="no other interpreters under ~/.pyenv/versions")
@pytest.mark.parametrize("python", TRAVELS, ids=lambda path: path.parts[-3])
def test_each_interpreter_finds_itself(tmp_path, python):
    build_zipapp(str(tmp_path / "probe.pyz"))
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [str(python), str(tmp_path / "probe.pyz")], env=environ, capture_output=True, timeout=60
    )
    told = json.loads(done.stdout)["environment"]
    assert told["python"]["value"] == python.parts[-3]
    assert "pip" in told["distributions"]
