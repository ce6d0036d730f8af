"""Every file that a call, a configuration or another file names is read through here, within bounds.

What counts is what is read, never what the file system says of a size: devices do not end, files grow, a FIFO
may have no writer. JSON from others has no numbers that overflow, no NaN and no depth that breaks a stack.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import time
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from envdoctor import lazy_re as re
from envdoctor.errors import InputError

BYTE_ORDER_MARK = "\ufeff"
MEBIBYTE = 1 << 20
FIRST_BYTE_S = 5.0
"""How long a FIFO may lack a writer."""
LONGEST_NUMBER = 1000
"""Digits of a whole number in JSON; Python itself reads 4300."""
NEXT_BYTE_S = 120.0
"""How long a writer may be silent: what it runs may take its time."""
_LOCKS = re.compile(
    r"(?:uv|poetry|pdm|pixi)\.lock|pipfile\.lock|pylock(?:\.[\w-]{1,80})?\.toml"
    r"|[\w.-]{1,120}\.py\.lock|(?:[\w.-]{1,120}\.)?conda-lock\.ya?ml",
    re.IGNORECASE,
)
_DOCKERFILES = re.compile(
    r"(?:[\w.-]{1,80}\.)?(?:dockerfile|containerfile)(?:[.-][\w.-]{1,80})?", re.IGNORECASE
)
_REQUIREMENTS = re.compile(r"(?i)(?:requirement|constraint)s?[\w.-]{0,80}\.(?:txt|in)$")
_PROGRAMS = (".sh", ".bash", ".sbatch", ".slurm", ".yaml", ".yml", ".toml", ".json", ".jsonc", ".json5")


def is_lock(path: str) -> bool:
    """True for a file whose name is that of a lock."""
    return _LOCKS.fullmatch(_base(path)) is not None


def is_dockerfile(path: str) -> bool:
    """True for a file whose name is that of a Dockerfile."""
    return _DOCKERFILES.fullmatch(_base(path)) is not None


def is_requirements(path: str) -> bool:
    """True for a file whose name says that it asks for distributions and lists none as installed."""
    return _REQUIREMENTS.search(path) is not None


def is_program(path: str) -> bool:
    """True for a file that by its name is run or read by a program: nobody reports there what happened."""
    return path.lower().endswith(_PROGRAMS)


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def open_input(path: str | Path) -> BinaryIO:
    """Open a file for reading; a pipe that stays silent and a device end in an error, none hangs.

    Raises InputError naming the file; so does reading from it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return os.fdopen(handle, "rb")
    if stat.S_ISFIFO(kind) or (stat.S_ISCHR(kind) and _ends(handle)):
        return io.BufferedReader(_Patient(handle, str(path)), 65_536)
    os.close(handle)
    raise InputError(f"{path}: {os.strerror(errno.EISDIR) if stat.S_ISDIR(kind) else 'a device, no file'}")


def _ends(handle: int) -> bool:
    """True for the devices that end: a terminal, and the one that is always empty."""
    return os.isatty(handle) or os.fstat(handle).st_rdev == os.stat(os.devnull).st_rdev


def read_input(path: str | Path, limit: int = 16 * MEBIBYTE) -> bytes:
    """Return the whole of a file of at most `limit` bytes; raises InputError naming the file."""
    try:
        with open_input(path) as stream:
            return read_at_most(stream, limit, str(path))
    except OSError as error:
        raise _refused(path, error) from None


def read_at_most(stream: BinaryIO, limit: int, name: str) -> bytes:
    """Return what is left of a stream; raises InputError when it is more than `limit` bytes."""
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (part := stream.read(min(left, MEBIBYTE))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise InputError(f"{name}: more than {_size(limit)}")
    return b"".join(parts)


def read_input_text(path: str | Path, limit: int = 16 * MEBIBYTE) -> str:
    """Return the text of a UTF-8 file; raises InputError naming the file."""
    try:
        return read_input(path, limit).decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        raise InputError(f"{path}: cannot be read: not UTF-8") from None


def parse_json(text: str | bytes, *, infinite: bool = False) -> Any:
    """Return the value of a JSON text; raises ValueError for anything else, too deep a text included.

    Numbers that overflow and JavaScript's NaN and Infinity are no JSON here, but where `infinite` is said:
    transformers writes them into a config.json.
    """
    named = float if infinite else _no_number
    try:
        return json.loads(text, parse_constant=named, parse_float=_finite, parse_int=_whole)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not abs(number) < float("inf"):
        raise ValueError("a number too large")
    return number


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= MEBIBYTE else f"{count} bytes"


def _refused(path: str | Path, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else "no name that a file can have"
    return InputError(f"{path}: cannot be read: {reason or error}")


class _Patient(io.RawIOBase):
    """A pipe or terminal whose silence ends in an error."""

    def __init__(self, handle: int, name: str) -> None:
        self._handle, self._name = handle, name
        self._fifo = stat.S_ISFIFO(os.fstat(handle).st_mode)
        self._heard = False

    def readable(self) -> bool:
        """Always true."""
        return True

    def close(self) -> None:
        """Close the descriptor."""
        if not self.closed:
            os.close(self._handle)
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Wait for bytes, within bounds; raises InputError for a pipe that stays silent."""
        started = time.monotonic()
        while True:
            try:
                data = os.read(self._handle, len(buffer))
            except BlockingIOError:
                from select import select

                patience = NEXT_BYTE_S
                select([self._handle], [], [], 1.0)
            else:
                if data or self._heard or not self._fifo:
                    self._heard = True
                    buffer[: len(data)] = data
                    return len(data)
                patience = FIRST_BYTE_S  # nobody writes to it, or nobody yet
                time.sleep(0.02)
            if time.monotonic() - started > patience:
                raise InputError(f"{self._name}: nothing came from it in {patience:.0f} s")
