"""The recording of a watch: JSON lines, each whole once written, within a budget of bytes for a day."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from envdoctor.errors import InputError
from envdoctor.files import open_stream
from envdoctor.inputs import open_input, parse_json
from envdoctor.watch.moment import Header, Line, Moment, from_json, to_json

DAY_BYTES = 18 << 20
"""What a day of moments may take; alarms, log lines and the end have the rest of 20 MiB."""
BURST_BYTES = 1 << 20
"""What may be written at once before moments are spread."""
DAY_S = 86_400
_KEPT = 50
LOG = ".log"
"""What a command says while its terminal shows the dashboard stands beside the recording, so named."""
_MADE = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9]{1,10}\.jsonl")
_LONGEST_LINE = 16 << 20


class Recording:
    """An open recording; a disk that is full ends it, and nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: IO[bytes] | None = open_stream(path)
        self._credit = float(BURST_BYTES)
        self._at = 0.0

    def has_room(self, t: float) -> bool:
        """True when the budget allows a moment at `t` seconds since the start."""
        passed, self._at = t - self._at, t
        self._credit = min(BURST_BYTES, self._credit + passed * DAY_BYTES / DAY_S)
        return self._credit > 0

    def write(self, line: Line) -> None:
        """Append a line."""
        if self._stream is None:
            return
        data = json.dumps(to_json(line), separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if isinstance(line, Moment):
            self._credit -= len(data)
        try:
            self._stream.write(data)
        except OSError:
            self.close()

    def close(self) -> None:
        """Write no more."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()
        self._stream = None


def default_path() -> Path:
    """Return a new name in the user's state folder; the oldest recordings there give way."""
    from platformdirs import user_state_path

    folder = user_state_path("envdoctor") / "watch"
    with contextlib.suppress(OSError):
        made = sorted(name for name in os.listdir(folder) if _MADE.fullmatch(name))
        for old in made[: -_KEPT + 1]:
            (folder / old).unlink()
            (folder / old).with_suffix(LOG).unlink(missing_ok=True)
    return folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.jsonl"


def read_recording(path: Path) -> Iterator[Line]:
    """Yield the lines of a recording, the last one cut by a death left out.

    Raises InputError naming the file and the line that is malformed.
    """
    try:
        with open_input(path) as stream:
            yield from _lines(path, stream)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None


def _lines(path: Path, stream: IO[bytes]) -> Iterator[Line]:
    for number, data in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), b""), 1):
        if not data.endswith(b"\n"):
            return
        try:
            line = from_json(parse_json(data))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{path}, line {number}: no line of a recording ({error})") from None
        if number == 1 and not isinstance(line, Header):
            raise InputError(f"{path}, line 1: not a recording of watch")
        if line is not None:
            yield line
