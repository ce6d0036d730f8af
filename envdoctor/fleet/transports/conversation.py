"""Launchers that run side by side, each fed once, heard line by line as it speaks, ended at its deadline."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from envdoctor.processes import Child, read_available, undisturbed

Hear = Callable[[str, bytes], None]
_PATIENCE_S = 3.0
_CHUNK = 1 << 16
_MAX_LINE = 1 << 20


@dataclass(eq=False, slots=True)
class Call:
    """A launcher that runs."""

    child: Child
    hear: Hear
    ended: Callable[[], None]
    deadline: float
    pending: memoryview
    waits: bool
    """Its input stays open until we are done with it."""
    partial: dict[str, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})
    streams: set[str] = field(default_factory=lambda: {"stdout", "stderr"})
    timed_out: bool = False
    """It was told to end at its deadline, whatever it was saying then."""
    obeyed: bool = True
    """It ended by itself or when it was told to, and so cleared away what it had started elsewhere."""


class Exchange:
    """The launchers that run now; those still running when the block is left are told to end."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._calls: list[Call] = []
        self._wakings: list[tuple[float, Callable[[], None]]] = []

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        """End them as a person would, so that they can clean up after themselves elsewhere, then for good.

        Those that wait for us end last: what the others run lives within what they hold.
        """
        self._wakings.clear()
        for call in self._calls:
            call.ended = _nothing
        for waits in (False, True):
            for call in [c for c in self._calls if c.waits is waits]:
                self._tell_to_end(call)
            while any(call.waits is waits for call in self._calls):
                self._hear_some()
        self._selector.close()

    def start(
        self,
        argv: Sequence[str],
        hear: Hear,
        ended: Callable[[Call], None],
        limit_s: float,
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Call:
        """Start a launcher; `ended` is called once it has said its last line. Without `stdin` it may wait.

        Raises Unavailable when it cannot be started.
        """
        deadline = time.monotonic() + limit_s
        with undisturbed():
            call = Call(
                Child(argv, env=env), hear, _nothing, deadline, memoryview(stdin or b""), stdin is None
            )
            self._calls.append(call)
        call.ended = lambda: ended(call)
        for name, stream in (("stdout", call.child.stdout), ("stderr", call.child.stderr)):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, (call, name))
        if stdin is not None:
            os.set_blocking(call.child.stdin.fileno(), False)
            self._selector.register(call.child.stdin, selectors.EVENT_WRITE, (call, "stdin"))
        return call

    def wake(self, after_s: float, then: Callable[[], None]) -> None:
        """Call `then` so many seconds from now, while launchers run."""
        self._wakings.append((time.monotonic() + after_s, then))

    def hang_up(self, call: Call) -> None:
        """Close what a launcher reads from, which ends one that waits for more; it has a moment to do so."""
        self._close_stdin(call)
        call.deadline = min(call.deadline, time.monotonic() + _PATIENCE_S)

    def listen(self) -> None:
        """Hand over what they say until all have ended, telling those past their deadlines to end."""
        while self._calls:
            self._hear_some()

    def _hear_some(self) -> None:
        now = time.monotonic()
        if late := [call for call in self._calls if call.deadline <= now]:
            for call in late:
                self._overrun(call)
            return
        if due := [waking for waking in self._wakings if waking[0] <= now]:
            self._wakings = [waking for waking in self._wakings if waking[0] > now]
            for _, then in due:
                then()
            return
        moments = [*(call.deadline for call in self._calls), *(at for at, _ in self._wakings)]
        for key, _ in self._selector.select(max(0.0, min(moments) - now)):
            call, name = key.data
            if name == "stdin":
                self._feed(call)
            elif name in call.streams:
                self._read(call, name, key.fileobj)  # type: ignore[arg-type]

    def _overrun(self, call: Call) -> None:
        if call.timed_out:
            call.obeyed = call.child.ended()
            self._finish(call)
        else:
            self._tell_to_end(call)

    def _tell_to_end(self, call: Call) -> None:
        call.timed_out = True
        call.deadline = time.monotonic() + _PATIENCE_S
        self._close_stdin(call)
        if not call.child.ended():
            os.kill(call.child.pid, signal.SIGTERM)

    def _feed(self, call: Call) -> None:
        try:
            call.pending = call.pending[os.write(call.child.stdin.fileno(), call.pending[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it needs no more
            call.pending = call.pending[:0]
        if not call.pending:
            self._close_stdin(call)

    def _close_stdin(self, call: Call) -> None:
        if not call.child.stdin.closed:
            with contextlib.suppress(KeyError):
                self._selector.unregister(call.child.stdin)
            call.child.stdin.close()

    def _read(self, call: Call, name: str, stream: IO[bytes]) -> None:
        data = read_available(stream)
        if data is None:
            self._selector.unregister(stream)
            call.streams.discard(name)
            if call.partial[name]:
                call.hear(name, call.partial[name])
            if not call.streams:
                self._finish(call)
            return
        *lines, rest = (call.partial[name] + data).split(b"\n")
        call.partial[name] = rest[:_MAX_LINE]
        for line in lines:
            call.hear(name, line)

    def _finish(self, call: Call) -> None:
        for stream in (call.child.stdin, call.child.stdout, call.child.stderr):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(stream)
        self._calls.remove(call)
        call.child.close()
        call.ended()


def _nothing() -> None:
    return
