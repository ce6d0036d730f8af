"""`--inside`: torch's allocator tells of itself, and nothing else changes for the command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from curves import GIB, alarms, moments

from envdoctor.watch.inside import Allocator, Inside

TORCH = """
def is_initialized(): return True
def device_count(): return 2
def memory_allocated(n): return 3 << 30
def max_memory_allocated(n): return (5 + n) << 30
def memory_reserved(n): return 8 << 30
"""
WAITS = "import sys, torch.cuda; print(sys.modules['sitecustomize'].__file__, flush=True); sys.stdin.read()"


def test_the_allocator_is_heard_and_the_next_sitecustomize_is_imported(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch/cuda.py").write_text(TORCH)
    (tmp_path / "sitecustomize.py").touch()
    inside = Inside()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**environment, **inside.environment(environment)},
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    with child, child.stdin, child.stdout:
        assert child.stdout.readline().strip() == str(tmp_path / "sitecustomize.py")
        deadline = time.monotonic() + 60
        while (told := inside.read([child.pid])) is None and time.monotonic() < deadline:
            time.sleep(0.05)
    inside.close()
    assert told == Allocator(11 * 1024, 16 * 1024)


def test_where_there_is_no_other_sitecustomize_nothing_is_said() -> None:
    inside = Inside()
    told = inside.environment({})
    done = subprocess.run(
        [sys.executable, "-c", "import sitecustomize"], env=told, capture_output=True, text=True
    )
    inside.close()
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_process_tells_is_taken_with_care(tmp_path: Path) -> None:
    inside = Inside()
    folder = Path(inside.environment({})["ENVDOCTOR_WATCH_INSIDE"])
    for name, text in {"1": "5 7\n", "2": "5", "3": "a b", "4": "9" * 99}.items():
        (folder / name).write_text(text)
    assert inside.read([1, 2, 3, 4, 5]) == Allocator(5, 7)
    inside.close()
    assert not folder.exists()


def test_what_was_reserved_and_never_given_out_is_fragmentation() -> None:
    full = list(moments(card=lambda _: 62.0 * GIB, seconds=60))
    (alarm,) = alarms(replace(m, allocated=40 * GIB, reserved=60 * GIB) for m in full)
    assert alarm.kind == "FRAGMENTATION"
    roomy = moments(card=lambda _: 45.0 * GIB, seconds=60)
    assert alarms(replace(m, allocated=25 * GIB, reserved=43 * GIB) for m in roomy) == []
    cached = (replace(m, allocated=58 * GIB, reserved=60 * GIB) for m in moments(seconds=60))
    assert alarms(cached) == []
