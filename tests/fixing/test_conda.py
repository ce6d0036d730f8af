"""`envdoctor fix` on conda's environments: what conda put there is changed by conda, at its own place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conda_world import make_conda_environment, make_stand_in
from small_world import fingerprint, make_wheel, offer_wheels, says

from envdoctor.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="an interpreter is copied as Linux allows")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheels that pip, uv and the stand-in for conda find."""
    folder = offer_wheels(tmp_path, monkeypatch)
    make_wheel(folder, "gammaline", "1.0")
    make_stand_in(folder)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


@pytest.fixture
def broken(tmp_path: Path, wheels: Path) -> Path:
    """An environment in which a package of conda's is older than another requires."""
    theirs = ("alphaline==1.0", "betaline==1.0", "gammaline==1.0")
    return make_conda_environment(tmp_path / "envs" / "train", theirs)


def state(python: Path) -> tuple[int, str]:
    folder = python.parents[1]
    return folder.stat().st_ino, fingerprint(folder)


def run(python: Path, *options: str) -> int:
    return main(["fix", "--python", str(python), "--quiet", *options])


def test_what_conda_installed_is_changed_by_conda_at_its_own_place(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, folder = state(broken), broken.parents[1]
    assert main(["diagnose", "--python", str(broken), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    command = f'conda install -p {folder} "betaline>=2"'
    assert [told["plan"]["commands"], told["findings"][0]["remedies"][0]["commands"]] == [[command]] * 2
    assert run(broken, "--apply") == 0
    assert says(broken, "import alphaline, betaline; print(betaline.VERSION)") == "2.1"
    assert (folder / "bin/betaline-say").read_text() == f"#!{folder}/bin/python\n"
    assert run(broken, "--undo") == 0
    assert state(broken) == before


@pytest.mark.parametrize(("fault", "said"), [("fail", "no space left"), ("lose", "would take out gammaline")])
def test_a_change_that_goes_wrong_leaves_it_as_it_was(
    broken: Path, wheels: Path, fault: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(broken)
    (wheels / "told").write_text(fault)
    assert run(broken, "--apply") == 3
    assert said in capsys.readouterr().err
    assert state(broken) == before
    assert [path.name for path in broken.parents[2].iterdir()] == ["train"]


def test_a_kill_at_its_own_place_is_taken_back_once_conda_has_ended(
    broken: Path, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(broken)
    (wheels / "told").write_text("kill")
    argv = [sys.executable, "-m", "envdoctor", "fix", "--apply", "--python", str(broken)]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == -9
    assert run(broken, "--undo") == 3
    assert "an installer of a killed one, is at work" in capsys.readouterr().err
    (wheels / "told").unlink()
    assert any(run(broken, "--undo") == 0 or time.sleep(0.1) for _ in range(200))
    assert state(broken) == before


def test_what_pip_installed_is_changed_by_exchange(tmp_path: Path, wheels: Path) -> None:
    python = make_conda_environment(
        tmp_path / "env", ("gammaline==1.0",), ("alphaline==1.0", "betaline==1.0")
    )
    before = state(python)
    (wheels / "conda").unlink()
    assert run(python, "--apply") == 0
    assert says(python, "import alphaline, betaline, sys; print(betaline.VERSION, sys.prefix)").split() == [
        "2.1",
        str(tmp_path / "env"),
    ]
    assert run(python, "--undo") == 0
    assert state(python) == before


@pytest.mark.parametrize(
    ("place", "holds", "said"),
    [
        (".pixi/envs/default", "", "pixi makes it from the project's manifest"),
        ("anaconda3", "condabin", "it is conda's base environment"),
        ("train", "", "there is no conda on the path"),
    ],
)
def test_what_cannot_be_changed_is_refused_with_its_reason(
    tmp_path: Path, wheels: Path, place: str, holds: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    python = make_conda_environment(tmp_path / place, ("alphaline==1.0", "betaline==1.0"))
    (python.parents[1] / holds).mkdir(exist_ok=True)
    (wheels / "conda").unlink()
    before = state(python)
    assert run(python, "--apply") == 3
    assert said in capsys.readouterr().err
    assert state(python) == before
