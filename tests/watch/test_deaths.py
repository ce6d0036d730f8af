"""The end of a run, explained through the command."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from curves import GIB, moments
from passing import PYTHON, environment

from envdoctor.watch.moment import End, Header, LogLine, to_json


def envdoctor(*argv: str, state: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-m", "envdoctor", *argv], env=environment(state), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=100, **more,
    )  # fmt: skip


RAISES = """
for step in range(3): print(f"step {step}/9", flush=True)
raise RuntimeError("CUDA error: no kernel image is available for execution on the device")
"""


def test_an_error_in_the_log_is_diagnosed(tmp_path: Path) -> None:
    answer = tmp_path / "end.json"
    done = envdoctor(
        "watch", "--format", "json", "-o", str(answer), "--", sys.executable, "-c", RAISES, state=tmp_path
    )
    assert done.returncode == 1
    told = json.loads(answer.read_text())
    assert (told["schema"], told["exit_code"]) == ("envdoctor.watch-report/1", 1)
    assert told["end"]["code"] == 1
    assert "no kernel image" in json.dumps([f["summary"] for f in told["diagnosis"]["findings"]]).lower()
    assert done.stdout == "step 0/9\nstep 1/9\nstep 2/9\n"


def test_the_end_is_said_on_standard_error(tmp_path: Path) -> None:
    done = envdoctor("watch", "--", "sh", "-c", "echo out; kill -SEGV $$", state=tmp_path)
    assert done.returncode == -11
    assert done.stdout == "out\n"
    assert "ended by SIGSEGV" in done.stderr
    assert "WATCH-SIGNAL" in done.stderr
    assert "recording" in done.stderr


def test_a_run_that_is_well_ends_without_a_word(tmp_path: Path) -> None:
    done = envdoctor("watch", "--", "echo", "out", state=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")


def recorded(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(to_json(line)) + "\n" for line in lines))
    return path


def leaking(path: Path, end: End, *log: str) -> Path:
    curve = list(moments(lambda t: 8 * GIB + 120 * t))
    header = Header(
        ("python", "train.py", "--per_device_train_batch_size", "4"), host="node7", bound="its limit"
    )
    return recorded(path, header, *curve, *(LogLine(9.0, line) for line in log), end)


def test_a_replay_says_what_was_said_and_why_it_ended(tmp_path: Path) -> None:
    path = leaking(tmp_path / "run.jsonl", End(470.0, None, 9, oom_kills=1))
    done = envdoctor("watch", "--replay", str(path), state=tmp_path)
    assert done.returncode == 1
    assert "ended by SIGKILL after 8 min at step" in done.stdout
    assert "host memory grows 12" in done.stdout
    assert "WATCH-HOST-OOM" in done.stdout
    told = json.loads(envdoctor("watch", "--replay", str(path), "--format", "json", state=tmp_path).stdout)
    finding = told["diagnosis"]["findings"][0]
    assert (finding["id"], finding["certainty"]) == ("WATCH-HOST-OOM", "certain")
    assert any(alarm["alarm"] == "HOST-LEAK" for alarm in told["alarms"])


def test_without_the_kernels_word_it_is_only_likely(tmp_path: Path) -> None:
    path = leaking(tmp_path / "run.jsonl", End(470.0, None, 9))
    told = json.loads(envdoctor("watch", "--replay", str(path), "--format", "json", state=tmp_path).stdout)
    assert told["diagnosis"]["findings"][0]["certainty"] == "likely"


def test_a_page_draws_a_recording(tmp_path: Path) -> None:
    path = leaking(tmp_path / "run.jsonl", End(470.0, 1, None), "torch.OutOfMemoryError: CUDA out of memory.")
    page = envdoctor("watch", "--replay", str(path), "--format", "html", state=tmp_path).stdout
    assert "WATCH-DEVICE-OOM" in page
    assert "<script" not in page


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    done = envdoctor("watch", "--replay", str(tmp_path / "x"), state=tmp_path)
    assert done.returncode == 2
    assert "x, line 1: no line of a recording" in done.stderr


LEAKS = """
import time
held = []
for step in range(1000):
    held.append(bytearray(b"x" * (4 << 20)))
    time.sleep(0.1)
    print(f"step {step}", flush=True)
"""
GROUPS = Path("/sys/fs/cgroup/memory")


def remove(group: Path) -> None:
    """Remove a control group once its last process is gone."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            return group.rmdir()
        time.sleep(0.1)
    group.rmdir()


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(not os.access(GROUPS, os.W_OK), reason="needs root and memory control groups to write to")
def test_a_leak_of_a_real_process_under_a_limit_is_foretold_and_explained(tmp_path: Path) -> None:
    group = GROUPS / f"envdoctor-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(600 << 20))
        answer = tmp_path / "end.json"
        done = envdoctor(
            "watch", "--format", "json", "-o", str(answer), "--", sys.executable, "-c", LEAKS, state=tmp_path,
            preexec_fn=lambda: (group / "tasks").write_text(str(os.getpid())),
        )  # fmt: skip
        told = json.loads(answer.read_text())
        died = done.stdout.count("step")
        first = next(alarm for alarm in told["alarms"] if alarm["alarm"] == "HOST-LEAK")
    finally:
        remove(group)
    assert done.returncode == -9
    assert abs(first["step"] - died) < 25
    assert told["diagnosis"]["findings"][0]["id"] == "WATCH-HOST-OOM"
    assert told["diagnosis"]["findings"][0]["certainty"] == "certain"
