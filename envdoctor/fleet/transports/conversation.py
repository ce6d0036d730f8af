"""A launcher that runs for a while: fed once, heard line by line as it speaks, ended gently."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from typing import IO

from envdoctor.processes import Child, read_available

Hear = Callable[[str, bytes], None]
_PATIENCE_S = 5.0
_CHUNK = 1 << 16
_MAX_LINE = 1 << 20


class Conversation:
    """A child whose lines are handed over as they come; raises Unavailable when it cannot be started."""

    def __init__(self, argv: Sequence[str], stdin: bytes) -> None:
        self._child = Child(argv)
        self._pending = memoryview(stdin)
        self._partial: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        """End it as a person would, so that it can clean up after itself on other machines, then for good."""
        if not self._child.ended():
            os.kill(self._child.pid, signal.SIGTERM)
            deadline = time.monotonic() + _PATIENCE_S
            while not self._child.ended() and time.monotonic() < deadline:
                time.sleep(0.02)
        self._child.close()

    def listen(self, hear: Hear, quiet_s: float) -> bool:
        """Hand lines to `hear` until both streams end; False when nothing was said for `quiet_s` seconds."""
        with selectors.DefaultSelector() as selector:
            for name, stream in (("stdout", self._child.stdout), ("stderr", self._child.stderr)):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, name)
            os.set_blocking(self._child.stdin.fileno(), False)
            selector.register(self._child.stdin, selectors.EVENT_WRITE, "stdin")
            heard = time.monotonic()
            while any(key.data != "stdin" for key in selector.get_map().values()):
                left = heard + quiet_s - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in selector.select(left):
                    if key.data == "stdin":
                        self._feed(selector)
                    else:
                        heard = time.monotonic()
                        self._read(selector, key, hear)
        return True

    def _feed(self, selector: selectors.BaseSelector) -> None:
        try:
            self._pending = self._pending[os.write(self._child.stdin.fileno(), self._pending[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it needs no more
            self._pending = self._pending[:0]
        if not self._pending:
            selector.unregister(self._child.stdin)
            self._child.stdin.close()

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey, hear: Hear) -> None:
        stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
        data = read_available(stream)
        if data is None:
            selector.unregister(stream)
            if self._partial[key.data]:
                hear(key.data, self._partial[key.data])
            return
        *lines, rest = (self._partial[key.data] + data).split(b"\n")
        self._partial[key.data] = rest[:_MAX_LINE]
        for line in lines:
            hear(key.data, line)
