"""A worker seen from the parent: its messages, its last lines, its deadline, and how it ended."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import time
from collections.abc import Mapping
from typing import IO, Any

from envdoctor.processes import Child, read_available, signal_name
from envdoctor.smokes.catalogue import WORKER
from envdoctor.smokes.planning import Request

_TAIL_BYTES = 4000
_TAIL_LINES = 20
_MAX_LINE_BYTES = 1 << 20
_DYING_S = 2.0  # from the end of its pipe to its own end, a core dump included


class Worker:
    """A running worker; `request` is the op it is busy with, None while it starts."""

    def __init__(
        self, python: str, env: Mapping[str, str], device: str | None, build: bool, start_s: float
    ) -> None:
        token = f"envdoctor-worker-{secrets.token_hex(16)}"
        order = json.dumps({"device": device, "build": build, "parent": os.getpid(), "token": token})
        self._opening = f"\n{token}\n".encode()
        self._opened = False
        self._child = Child([python, "-B", str(WORKER), "serve", order], env=env)
        for stream in (self._child.stdout, self._child.stderr):
            os.set_blocking(stream.fileno(), False)
        self.request: Request | None = None
        self.ready = False
        self.served = 0
        self.phase = "starting Python"
        self.deadline = time.monotonic() + start_s
        self._unread = b""
        self._tail = b""
        self._closed = False
        self._rubbish = False
        self._ended: set[IO[bytes]] = set()

    @property
    def open_streams(self) -> tuple[IO[bytes], ...]:
        """What to wait on: its answers and its complaints, as long as they are open."""
        both = (self._child.stdout, self._child.stderr)
        return tuple(stream for stream in both if stream not in self._ended)

    def send(self, request: Request, timeout_s: float) -> None:
        """Set it to work; if it is dead already, its silence will tell."""
        self.request, self.phase, self._tail = request, "receiving the op", b""
        self.deadline = time.monotonic() + timeout_s * request.op.patience
        line = json.dumps({"op": request.op.name, "gpus": request.gpus}) + "\n"
        try:
            os.write(self._child.stdin.fileno(), line.encode())
        except OSError:
            return

    def receive(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the messages that came, and whether it can send no more (it ended, or spoke rubbish)."""
        self._read_tail()
        over = self._child.ended()
        while data := read_available(self._child.stdout):
            self._unread = self._after_opening(self._unread + data)
        if not self._opened:
            return [], over or data is None
        *lines, self._unread = self._unread.split(b"\n")
        messages = list(itertools.takewhile(bool, map(parse_message, lines)))
        self._rubbish = len(messages) < len(lines) or len(self._unread) > _MAX_LINE_BYTES
        return [message for message in messages if message], over or data is None or self._rubbish

    def _after_opening(self, data: bytes) -> bytes:
        """Return what follows the worker's token; what Python's start printed before is dropped."""
        if self._opened:
            return data
        before, found, after = data.partition(self._opening)
        self._opened = bool(found)
        return after if found else before[-len(self._opening) :]

    def _read_tail(self) -> None:
        data: bytes | None = b""
        while not self._closed and (data := read_available(self._child.stderr)):
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
        if data is None:
            self._ended.add(self._child.stderr)

    def tail(self) -> str:
        """Return the last lines it wrote since it took its op."""
        self._read_tail()
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-_TAIL_LINES:])

    def end(self) -> tuple[str, str | None]:
        """Wait for a worker that fell silent and return how it ended in words, and its signal's name."""
        if self._rubbish:
            self.close()
            return "wrote rubbish into its pipe", None
        until = time.monotonic() + _DYING_S
        while not self._child.ended() and time.monotonic() < until:
            time.sleep(0.005)
        if not self._child.ended():
            self.close()
            return "lost its pipe", None
        status = self.close()
        name = signal_name(status)
        return f"died of {name}" if name else f"ended with status {status}", name

    def close(self) -> int:
        """Kill it with its whole group and return its status."""
        self._read_tail()
        self._closed = True
        return self._child.close()


def parse_message(line: bytes) -> dict[str, Any] | None:
    """Return a worker's message, or None for anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and isinstance(message.get("event"), str) else None
