"""What lies there and cannot be read is never taken for fine: exit 3, the part and the file named."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.probes import files


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def folder(path: Path) -> None:
    path.mkdir()


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def crowded(path: Path) -> None:
    path.mkdir()
    for number in range(files.MAX_ENTRIES + 1):
        (path / str(number)).touch()


KINDS = {
    fifo: "a FIFO",
    endless: "a device",
    listening: "a socket",
    folder: "a folder",
    circle: "symbolic links",
}
PLACES = {
    "pyvenv.cfg": "environment",
    "site/torch/version.py": "environment",
    "site/torch/lib/libc10.so": "environment",
    "site/torch/lib/libtorch_cuda.so": "libraries",
    "site/torch-2.9.0.dist-info/METADATA": "environment",
    "site/torch-2.9.0.dist-info/RECORD": "environment",
    "site/torch-2.9.0.dist-info/INSTALLER": "environment",
    "site/torch-2.9.0.dist-info/direct_url.json": "environment",
    "site/old-1.0.egg-link": "environment",
    "site/more.pth": "environment",
    "site/xformers/cpp_lib.json": "environment",
    "site/deepspeed/git_version_info_installed.py": "environment",
    "site/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so": "environment",
}


BUILT = ("torch", "xformers", "deepspeed", "flash_attn")


@pytest.fixture
def bare(env: Path) -> Path:
    """An environment with nothing to find fault with."""
    for name in BUILT:
        shutil.rmtree(env / f"site/{name}-2.9.0.dist-info")
    return env


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """An environment of a few packages that are built for something."""
    site = tmp_path / "lib/python3.12/site-packages"
    (site / "torch/lib").mkdir(parents=True)
    (tmp_path / "site").symlink_to(site)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/python").chmod(0o755)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
    for name in BUILT:
        (site / f"{name}-2.9.0.dist-info").mkdir()
        info = site / f"{name}-2.9.0.dist-info"
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 2.9.0\n\n")
        (info / "RECORD").write_text("")
        (info / "INSTALLER").write_text("pip\n")
        (site / name).mkdir(exist_ok=True)
    (site / "torch/version.py").write_text("__version__ = '2.9.0+cu128'\ncuda = '12.8'\n")
    return tmp_path


def put(path: Path, make: Callable[[Path], None]) -> None:
    if path.is_file():
        path.unlink()
    make(path)


def diagnosed(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, object]]:
    status = main(["diagnose", "--format", "json", *options])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_file_is_named_and_the_exit_is_3(env, capsys, place, make):
    put(env / place, make)
    assert main(["probe", "--python", str(env)]) == 3
    out, err = capsys.readouterr()
    told = json.loads(out)["unread"][PLACES[place]]
    assert Path(place).name in told
    assert KINDS[make] in told
    assert told in err


def test_a_whole_environment_is_no_such_case(bare, capsys):
    status, diagnosis = diagnosed(capsys, "--python", str(bare))
    assert "unread" not in diagnosis["facts"]
    assert status == 0


def test_a_diagnosis_has_a_broken_check_for_it(bare, capsys):
    put(bare / "site/more.pth", fifo)
    status, diagnosis = diagnosed(capsys, "--python", str(bare))
    check = next(check for check in diagnosis["checks"] if check["rule"] == "UNREAD")
    assert (status, check["outcome"]) == (3, "crashed")
    assert check["reason"].startswith("environment not known: ")


def test_findings_of_the_rest_still_stand(env, capsys):
    (env / "site/torch-2.9.0.dist-info/METADATA").write_text("Name: torch\nVersion: 2.5.1\n\n")
    put(env / "site/more.pth", fifo)
    status, diagnosis = diagnosed(capsys, "--python", str(env), "--gpu", "RTX 5090")
    assert status == 1
    assert "TORCH-ARCH" in {finding["id"] for finding in diagnosis["findings"]}
    assert "more.pth is a FIFO" in diagnosis["facts"]["unread"]["environment"]


def test_a_selection_does_not_hide_it_and_a_wish_does(bare, capsys):
    put(bare / "site/more.pth", fifo)
    assert diagnosed(capsys, "--python", str(bare), "--select", "DISK-FULL")[0] == 3
    assert diagnosed(capsys, "--python", str(bare), "--select", "DISK-FULL", "--ignore", "UNREAD")[0] == 0


@pytest.mark.parametrize("style", ["text", "markdown", "html", "sarif", "junit", "github"])
def test_every_format_names_it(bare, capsys, style):
    put(bare / "site/more.pth", fifo)
    assert main(["diagnose", "--python", str(bare), "--format", style]) == 3
    out = capsys.readouterr().out
    assert "FIFO" in out
    assert "more.pth" in "".join(out.split())
    assert "✓ nothing found" not in out


def test_a_folder_of_too_many_entries(bare, capsys, monkeypatch):
    monkeypatch.setattr(files, "MAX_ENTRIES", 50)
    put(bare / "site/nvidia", crowded)
    status, diagnosis = diagnosed(capsys, "--python", str(bare))
    assert status == 3
    assert "nvidia holds more than 50 entries" in diagnosis["facts"]["unread"]["libraries"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_packages_folder_that_is_closed_to_us(bare, capsys):
    (bare / "site").resolve().chmod(0)
    status, diagnosis = diagnosed(capsys, "--python", str(bare))
    (bare / "site").resolve().chmod(0o755)
    assert status == 3
    assert "Permission denied" in diagnosis["facts"]["unread"]["environment"]
    assert not diagnosis["facts"]["environment"].get("complete")


def test_a_script_in_place_of_an_interpreter(tmp_path, capsys):
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\nsleep 100\n")
    path.chmod(0o755)
    status, diagnosis = diagnosed(capsys, "--python", str(path))
    assert status == 3
    assert "is a script, which is not run" in diagnosis["facts"]["unread"]["environment"]
    assert diagnosis["facts"]["environment"]["python"]["unknown"]


def test_the_probe_writes_what_it_has_and_says_what_not(bare, capsys):
    put(bare / "site/more.pth", fifo)
    assert main(["probe", "--python", str(bare)]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["environment"]["python"]["value"] == "3.12.3"
    assert err.startswith("envdoctor: not known: environment: ")
    assert len(err.splitlines()) == 1


def test_facts_that_were_sent_keep_it(bare, capsys, tmp_path):
    put(bare / "site/more.pth", fifo)
    main(["probe", "--python", str(bare), "-o", str(tmp_path / "facts.json"), "--quiet"])
    capsys.readouterr()
    assert diagnosed(capsys, "--from", str(tmp_path / "facts.json"))[0] == 3
