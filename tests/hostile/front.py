"""A process that has everything imported and answers each command in a fork of itself; and its other end.

So a command costs hundredths of a second, and thousands can be run; each is a whole run of the command line,
with its own streams, within bounds of time and memory, and can be killed at a moment that one chooses.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

MOST_BYTES = 4 << 30
FILE_EVENTS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod")
MODULES = ("diagnose", "pin", "why_not", "memory", "profile", "bundle", "fleet", "matrix", "rules", "probe")


class Ended(NamedTuple):
    """How a command ended: its status (negative: the signal), what it wrote, its time and memory in MiB."""

    status: int
    out: bytes
    err: bytes
    cpu_s: float
    rss_mib: float

    @property
    def is_clean(self) -> bool:
        """True for an answer (which with status 3 is that something is not known), or one line of error."""
        if self.status not in (0, 1, 2, 3) or b"Traceback" in self.err or b"Exception ignored" in self.err:
            return False
        lines = [line for line in self.err.splitlines() if line.startswith(b"envdoctor: ")]
        return self.status in (0, 1) or len(lines) == 1 or (self.status == 3 and bool(self.out.strip()))


class Front:
    """The other end: starts the process and hands it commands."""

    def __enter__(self) -> Front:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._folder.cleanup()

    def run(self, *arguments: str, cwd: Path, **how: Any) -> Ended:
        """Run one command; `kill_event` or `kill_after_s` say when it is killed, `limit_s` when it hangs."""
        out, err = (Path(self._folder.name, name) for name in ("out", "err"))
        job = {"arguments": arguments, "cwd": str(cwd), "out": str(out), "err": str(err), **how}
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        status, cpu_s, rss_mib = json.loads(self._process.stdout.readline())
        return Ended(status, out.read_bytes(), err.read_bytes(), cpu_s, rss_mib)


def _child(job: dict[str, Any]) -> int:
    os.setpgid(0, 0)
    os.chdir(job["cwd"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    _arm(job.get("kill_event"))
    from envdoctor.cli import main

    try:
        status = main(job["arguments"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _arm(at: int | None) -> None:
    """Die at the file event of that number; with 0, count them and tell the number on standard error."""
    if at is None:
        return
    seen = 0

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in FILE_EVENTS or (event == "open" and not _writes(arguments)):
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
        if at == 0:
            os.write(2, b"event\n")

    sys.addaudithook(hear)


def _writes(arguments: tuple[Any, ...]) -> bool:
    flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else 0
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _answer(job: dict[str, Any]) -> tuple[int, float, float]:
    pid = os.fork()
    if pid == 0:
        status = 71
        try:
            status = _child(job)
        finally:
            os._exit(status)
    end = time.monotonic() + min(job.get("kill_after_s", 1e9), job.get("limit_s", 120))
    while True:
        done, how, used = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            _, how, used = os.wait4(pid, 0)
            break
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(how), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _serve() -> None:
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import gc
    import importlib

    from envdoctor import inputs
    from envdoctor.matrix import load_matrix

    inputs.FIRST_BYTE_S = 0.5  # a FIFO that nobody writes to is given up sooner than for a person
    for name in MODULES:
        importlib.import_module(f"envdoctor.cli.{name}")
    load_matrix()
    gc.freeze()
    for line in jobs:
        answers.write(json.dumps(_answer(json.loads(line))).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
