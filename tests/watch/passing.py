"""Runs a program as it is and under watch, and tells what a caller could see of either."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
WATCH = [PYTHON, "-m", "envdoctor", "watch", "--quiet", "--"]
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Seen:
    """The exit status as `wait` tells it (negative: a signal), what was said, and what else was noticed."""

    status: int
    stdout: bytes
    stderr: bytes
    notes: tuple[object, ...] = ()


def environment(state: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(state)}


Act = Callable[[subprocess.Popen[bytes]], tuple[object, ...]]


def nothing(_: subprocess.Popen[bytes]) -> tuple[object, ...]:
    return ()


def start(argv: Sequence[str], state: Path) -> subprocess.Popen[bytes]:
    """Start with pipes, in a process group of its own."""
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(state), preexec_fn=os.setpgrp,
    )  # fmt: skip


def end(child: subprocess.Popen[bytes], act: Act, stdin: bytes) -> Seen:
    """Return what is seen until it ends."""
    try:
        notes = act(child)
        out, err = child.communicate(stdin, PATIENCE_S)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return Seen(child.returncode, out, err, notes)


def seen(argv: Sequence[str], state: Path, act: Act = nothing, stdin: bytes = b"") -> Seen:
    """Run with pipes; `act` plays the user."""
    return end(start(argv, state), act, stdin)


def both(argv: Sequence[str], state: Path, act: Act = nothing, stdin: bytes = b"") -> tuple[Seen, Seen]:
    """Return what is seen without and with watch; where a user acts and waits, at the same time."""
    if act is nothing:
        return seen(argv, state, act, stdin), seen([*WATCH, *argv], state, act, stdin)
    children = [start([*words, *argv], state) for words in ([], WATCH)]
    with ThreadPoolExecutor(2) as pool:  # no process is started while threads run
        alone, watched = pool.map(lambda child: end(child, act, stdin), children)
    return alone, watched


def script(code: str) -> list[str]:
    """Return a call of Python that says `ready` on standard output first."""
    return [PYTHON, "-u", "-c", f"import os, signal, sys, time\n{code}"]


def await_ready(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"


def on_terminal(argv: Sequence[str], state: Path, play: Callable[[Terminal], None]) -> tuple[int, bytes]:
    """Run with a terminal of 100 x 30 as all three streams; return the status and the screen's bytes."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.environ["XDG_STATE_HOME"] = str(state)
            import fcntl
            import struct
            import termios

            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execvp(argv[0], list(argv))
        finally:
            os._exit(99)
    terminal = Terminal(pid, master)
    try:
        play(terminal)
        terminal.read_to_end()
        return terminal.status(), terminal.screen
    finally:
        terminal.close()


class Terminal:
    """The user's side of a terminal."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self.master = master
        self.screen = b""
        self._status: int | None = None

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def until(self, words: bytes) -> None:
        """Read until these words were shown (again)."""
        start = len(self.screen)
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.screen[start:]:
            assert time.monotonic() < deadline, self.screen
            if not self._read():
                break
        assert words in self.screen[start:], self.screen

    def read_to_end(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self._read():
            pass

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 1.0)[0]:
            return True
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.screen += data
        return bool(data)

    def status(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def close(self) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
