"""Started without a word, in its own environment: what was examined is said, and what lies near."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.nearby import read_nearby


def environment(prefix: Path, torch: bool = False) -> Path:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").touch()
    if torch:
        (prefix / "lib" / "python3.11" / "site-packages" / "torch").mkdir(parents=True)
    return prefix


def test_environments_with_torch_stand_first(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    environment(project / ".venv")
    environment(home / "miniconda3" / "envs" / "train", torch=True)
    environment(home / ".cache" / "pypoetry" / "virtualenvs" / "x-py3.11")
    near = read_nearby({"VIRTUAL_ENV": str(environment(tmp_path / "active"))}, project, home, "/nowhere")
    told = [(Path(one.python).parent.parent.name, one.found, one.has_torch) for one in near]
    assert told[0] == ("train", "conda", True)
    assert {name for name, _, _ in told[1:4]} == {"active", ".venv", "x-py3.11"}


def test_its_own_environment_is_not_offered(tmp_path: Path) -> None:
    own = environment(tmp_path / ".venv")
    assert str(own / "bin" / "python") not in [
        one.python for one in read_nearby({}, tmp_path, tmp_path, str(own))
    ]


@pytest.mark.parametrize("broken", ["a file", "nothing"])
def test_what_is_no_environment_is_passed_over(tmp_path: Path, broken: str) -> None:
    if broken == "a file":
        (tmp_path / ".venv").touch()
    found = read_nearby({"VIRTUAL_ENV": str(tmp_path / "gone")}, tmp_path, tmp_path, "/nowhere")
    assert all(str(tmp_path) not in one.python for one in found)


def test_the_first_command_says_what_it_examined(tmp_path: Path) -> None:
    environment(tmp_path / ".venv", torch=True)
    environ = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    done = subprocess.run(
        [sys.executable, "-m", "envdoctor", "diagnose", "--format", "json"],
        cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    note = next(f for f in json.loads(done.stdout)["findings"] if f["id"] == "OWN-ENVIRONMENT")
    assert f"envdoctor diagnose --python {tmp_path}/.venv/bin/python" in note["remedies"][0]["commands"]
