"""A process without what it takes for granted, and programs on PATH that misbehave: always an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.probes import nvidia_smi, toolkits
from envdoctor.probes.machine import Machine
from envdoctor.probes.reading import read_machine

DOCTOR = f"{sys.executable} -m envdoctor diagnose --format json"
STARVED = {
    "its folder is gone": f"mkdir gone && cd gone && rmdir ../gone && {DOCTOR}",
    "standard input is closed": f"{DOCTOR} 0<&-",
    "standard error is closed": f"{DOCTOR} 2>&-",
    "few files": f"ulimit -n 40; {DOCTOR}",
    "few processes": f"ulimit -u 64; {DOCTOR}",
    "no core files": f"ulimit -c 0; {DOCTOR}",
    "a gigabyte of memory": f"ulimit -v 1500000; {DOCTOR}",
    "no variables": f"env -i {DOCTOR}",
    "no home": f"env -u HOME {DOCTOR}",
    "another language": f"LC_ALL=tr_TR.UTF-8 LANG=ja_JP.eucJP {DOCTOR}",
    "no UTF-8": f"LC_ALL=C PYTHONIOENCODING=ascii {DOCTOR}",
}


@pytest.mark.parametrize("line", STARVED.values(), ids=STARVED)
def test_a_starved_process_answers(tmp_path: Path, line: str) -> None:
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=100, errors="replace"
    )
    diagnosis = json.loads(done.stdout)
    assert done.returncode == diagnosis["exit_code"]
    assert "Traceback" not in done.stderr
    broken = {check["rule"] for check in diagnosis["checks"] if check["outcome"] == "crashed"}
    assert broken <= {"UNREAD"}


PROGRAMS = {
    "hangs": "sleep 1000",
    "dies": "kill -SEGV $$",
    "is silent": "exit 0",
    "babbles": "yes",
    "says noise": "head -c 100000 /dev/urandom",
    "says one line": "head -c 900000 /dev/zero | tr '\\0' ','",
    "numbers without end": "printf '0, x, y, %05000d, 1, z, 580.1, 9.0\\n' 9",
    "leaves a child": "sleep 1000 & exit 0",
    "closes its output": "exec 1>&- 2>&-; sleep 1000",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_that_misbehave_are_named(tmp_path, monkeypatch, text) -> None:
    monkeypatch.setattr(nvidia_smi, "LIMIT_S", 0.5)
    monkeypatch.setattr(toolkits, "LIMIT_S", 0.5)
    for name in ("nvidia-smi", "nvcc"):
        program = tmp_path / "cuda/bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    environ = {"PATH": f"{tmp_path}/cuda/bin:{os.environ['PATH']}"}
    answer = read_machine(machine=Machine(environ=environ, load_library=_none))
    assert not [one for one in answer["toolkits"]["value"] if one["path"].startswith(str(tmp_path))]
    assert any("its version could not be read" in note for note in answer["notes"])
    assert answer["gpus"].get("value", []) == []


def _none(name: str) -> object:
    raise OSError(name)
