"""The probe on its way: the same facts from every Python, framed among whatever else a node says."""

from __future__ import annotations

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.fleet.carriage import Cargo, Frames, frame_node, pack, program
from envdoctor.fleet.transports.reasons import reason_of
from envdoctor.probes import read_machine

PYTHONS = sorted(
    {
        path
        for minor in range(8, 14)
        for path in [
            shutil.which(f"python3.{minor}") or "",
            *glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3")),
        ]
        if path and "/shims/" not in path
    }
    | {sys.executable}
)
ONE = b"envdoctor:node7:1/2:eJyrVkpUslIy"
OWN = ("memory_available_bytes", "disk_free_bytes", "container", "time_s", "limits", "locale", "mounts")


def send(cargo: Cargo, python: str | None = None) -> subprocess.CompletedProcess[bytes]:
    command = cargo.command if python is None else cargo.command.replace("python3", shlex.quote(python), 1)
    return subprocess.run(
        ["sh", "-c", command], input=cargo.stdin, capture_output=True, check=False, timeout=60, cwd="/"
    )


def gathered(output: bytes) -> Frames:
    frames = Frames()
    for line in output.splitlines():
        frames.add(line)
    return frames


def same(facts: dict[str, object]) -> dict[str, object]:
    host = {k: v for k, v in facts["host"].items() if k not in OWN}  # type: ignore[attr-defined]
    return {**{k: v for k, v in facts.items() if k != "host"}, "host": host}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_from_3_8_tells_what_the_package_tells(python: str) -> None:
    cargo = pack(30, sys.executable)
    command = cargo.command.replace(shlex.quote(sys.executable), shlex.quote(python), 1)
    done = send(Cargo(command, cargo.stdin))
    text = gathered(done.stdout).text()
    assert text is not None, done.stderr
    assert same(json.loads(text)) == same(json.loads(json.dumps(read_machine(sys.executable))))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    cargo = pack(30, None)
    environ = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", cargo.command],
        input=cargo.stdin,
        capture_output=True,
        check=True,
        env=environ,
        cwd=tmp_path,
    )
    assert gathered(done.stdout).complete
    assert list(tmp_path.iterdir()) == []


def test_lines_stay_short_enough_for_launchers_that_prefix_them() -> None:
    lines = send(pack(30, None)).stdout.splitlines()
    assert max(map(len, lines)) < 1000


def test_frames_are_found_in_any_order_among_anything_else() -> None:
    lines = [b"Welcome!", *reversed(send(pack(30, None)).stdout.splitlines()), b"logout"]
    frames = gathered(b"\n".join(b" 12: " + line for line in lines))
    assert frames.complete
    assert b"Welcome!" in frames.noise
    assert frame_node(lines[1]) == os.uname().nodename


@pytest.mark.parametrize(
    "lines",
    [[], [ONE], [ONE, ONE.replace(b"1/2", b"2/2")], [b"envdoctor:n:1/1:!!!"], [b"envdoctor:n:9/1:AAAA"]],
)
def test_damaged_frames_give_no_text(lines: list[bytes]) -> None:
    assert gathered(b"\n".join(lines)).text() is None


def test_a_probe_that_arrives_cut_says_so() -> None:
    cargo = pack(30, None)
    done = send(Cargo(cargo.command, cargo.stdin[:-100]))
    assert done.returncode == 1
    assert b"arrived cut" in done.stderr


def test_an_interpreter_that_is_not_there_is_named() -> None:
    done = send(pack(30, "/opt/env/bin/python"))
    assert reason_of(Frames(), done.returncode, done.stderr).startswith("no Python there: ")


def test_a_node_that_hangs_ends_itself_at_its_deadline() -> None:
    cargo = program("import signal, time\nsignal.alarm(1)", "time.sleep(30)", b"", None)
    done = subprocess.run(
        shlex.split(cargo.command), input=cargo.stdin, capture_output=True, check=False, timeout=20
    )
    assert reason_of(Frames(), done.returncode, done.stderr) == "the probe was ended at its deadline"
