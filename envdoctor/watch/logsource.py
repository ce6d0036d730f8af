"""The copies of a child's output: from the relay, and from the files that it writes to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from envdoctor.watch.loglines import TAKEN_BYTES


class LogSource:
    """The copies of a child's output: from the relay, and from the files that it writes to."""

    def __init__(self, pipe: int | None, files: Sequence[tuple[int, int]]) -> None:
        self._pipe = pipe
        self._files = [opened for fd, size in files if (opened := _reopened(fd, size)) is not None]
        self.is_read = pipe is not None or bool(self._files)

    def read(self) -> bytes:
        """Return what is new; of much, the end."""
        parts = [self._from_pipe()] if self._pipe is not None else []
        return b"".join([*parts, *map(_grown, self._files)])

    def _from_pipe(self) -> bytes:
        data = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(self._pipe or 0, 1 << 18):
                data = (data + chunk)[-2 * TAKEN_BYTES :]
        return data


def _reopened(fd: int, size: int) -> int | None:
    """Open a file that the child writes to for reading, from where it ended before."""
    try:
        opened = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        os.lseek(opened, size, os.SEEK_SET)
    except OSError:
        return None
    return opened


def _grown(fd: int) -> bytes:
    with contextlib.suppress(OSError):
        size, at = os.fstat(fd).st_size, os.lseek(fd, 0, os.SEEK_CUR)
        if size < at:
            os.lseek(fd, 0, os.SEEK_SET)
        elif size - at > 2 * TAKEN_BYTES:
            os.lseek(fd, -2 * TAKEN_BYTES, os.SEEK_END)
        return os.read(fd, 2 * TAKEN_BYTES)
    return b""
