"""Whatever NVML's library does, the doctor lives, answers in time, and says that it could not ask it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.probes import gpus

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
SOURCE = Path(__file__).with_name("nvml_stub.c")
LIMIT_S = 1.0


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a libnvidia-ml.so.1 that misbehaves as it is told."""
    folder = tmp_path_factory.mktemp("nvml")
    command = ["gcc", "-w", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", SOURCE]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def probed(library, tmp_path, monkeypatch, capsys):
    """Probe a machine with that library; return the exit code and the facts."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)

    def probe(mode: str) -> tuple[int, dict[str, object]]:
        monkeypatch.setenv("NVML_STUB", mode)
        if mode.endswith(("hang", "spin")):
            monkeypatch.setattr(gpus, "LIMIT_S", LIMIT_S)
        status = main(["probe", "--quiet"])
        return status, json.loads(capsys.readouterr().out)

    return probe


@pytest.mark.parametrize("where", ["load", "init", "name", "shutdown"])
@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("segv", "its process ended by SIGSEGV"),
        ("exit", "its process ended with status 0"),
        ("abort", "its process ended by SIGABRT"),
        ("hang", "gave no answer within 1 s"),
        ("spin", "gave no answer within 1 s"),
        ("chatter", "its process wrote more than"),
        ("close", "its process ended with status"),
    ],
)
def test_a_library_that_takes_its_process_down(probed, where, deed, said):
    status, facts = probed(f"{where}-{deed}")
    assert status == 3
    assert said in facts["unread"]["gpus"]
    assert facts["gpus"].get("value") != []
    assert "unknown" in facts["driver"]["nvml"]
    assert facts["environment"]["python"]["value"]


@pytest.mark.slow
def test_a_library_that_eats_memory(probed):
    assert probed("name-eat")[0] == 3


def test_a_library_in_order(probed):
    status, facts = probed("ok")
    [gpu] = facts["gpus"]["value"]
    assert (status, gpu["name"], gpu["nvlinks_up"]) == (0, "NVIDIA H200", 18)


def test_what_a_library_prints_is_no_answer(probed):
    status, facts = probed("chatty")
    assert (status, facts["gpus"]["value"][0]["name"]) == (0, "NVIDIA H200")


@pytest.mark.parametrize(
    ("mode", "said"), [("absurd", "4294967295"), ("billions", "4000000000"), ("mig", "4000000000")]
)
def test_numbers_that_no_machine_has_are_unknown(probed, mode, said):
    status, facts = probed(mode)
    assert status == 3
    assert said in facts["unread"]["gpus"]
    for gpu in facts["gpus"].get("value", ()):
        assert all(value < 1 << 50 for value in gpu.values() if isinstance(value, int))
        assert "\x1b" not in gpu["name"]


@pytest.mark.parametrize("mode", ["bytes", "huge-version"])
def test_texts_that_are_none(probed, mode):
    status, facts = probed(mode)
    assert status == 0
    assert facts["driver"]["user_version"]["unknown"]


@pytest.mark.parametrize(("mode", "expected"), [("refuses", 3), ("not-loaded", 0)])
def test_an_error_that_explains_nothing_leaves_the_gpus_not_known(probed, mode, expected):
    status, facts = probed(mode)
    assert status == expected
    assert "NVML error" in facts["driver"]["nvml"]["value"]


@pytest.mark.parametrize("mode", ["init-segv", "name-exit", "absurd", "billions"])
def test_a_diagnosis_of_it(library, tmp_path, mode):
    environ = {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STUB": mode}
    command = [sys.executable, "-m", "envdoctor", "diagnose", "--format", "json"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (told["exit_code"], "")
    assert done.returncode in (1, 3)
    assert next(check for check in told["checks"] if check["rule"] == "UNREAD")["outcome"] == "crashed"


def test_one_that_the_examined_environment_brings_is_not_loaded(library, tmp_path, probed, monkeypatch):
    (tmp_path / "env/lib").mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    shutil.copy(library / "libnvidia-ml.so.1", tmp_path / "env/lib")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "env/lib"))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    _, facts = probed("ok")
    assert facts["driver"]["nvml"]["unknown"]


def test_the_travelling_probe_asks_in_a_child_too(library, tmp_path):
    from envdoctor.probes.travel import build_zipapp

    build_zipapp(str(tmp_path / "probe.pyz"))
    for mode, expected in (("ok", "NVIDIA H200"), ("init-segv", "SIGSEGV")):
        environ = {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STUB": mode}
        command = [sys.executable, "-I", str(tmp_path / "probe.pyz")]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
        assert expected in done.stdout


@pytest.mark.parametrize(("mode", "expected"), [("ok", "NVIDIA H200"), ("init-segv", "SIGSEGV")])
def test_the_probe_that_runs_from_memory_on_a_node_does_so_too(library, mode, expected):
    from envdoctor.fleet.carriage import Frames, pack

    environ = {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STUB": mode}
    cargo = pack(30, sys.executable)
    done = subprocess.run(
        cargo.command, shell=True, input=cargo.stdin, env=environ, capture_output=True, timeout=60
    )
    frames = Frames()
    for line in done.stdout.splitlines(keepends=True):
        frames.add(line)
    assert expected in frames.text().decode()
