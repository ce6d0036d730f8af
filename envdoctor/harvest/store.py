"""The folder of package facts: one JSON file a package, each replaced whole or not at all.

`{"schema": "envdoctor.package/1", "name", "fetched", "etag", "core", "floor", "releases": {VERSION:
{"files": [...], "requires": [...] | null, "unusable": {line: reason}, "requires_source", "requires_reason",
"deep": {...}}}}`. One lock a folder: a second writer is refused, not interleaved. Nothing in the folder is
ever removed, and no file that is not a record is replaced.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.files import replace_file
from envdoctor.inputs import open_input, parse_json, read_input

SCHEMA = "envdoctor.package/1"
MAX_RECORD_BYTES = 64 << 20
_OPENING = re.compile(rb'\s*\{\s*"schema"\s*:\s*"envdoctor\.package/')
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PackageStore:
    """A folder of package records."""

    folder: Path

    def names(self) -> list[str]:
        """Return the packages that have a record, sorted."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def read(self, name: str) -> Record | None:
        """Return a package's record, or None when there is none or it is damaged."""
        try:
            path = self._path(name)
            record = parse_json(read_input(path, MAX_RECORD_BYTES)) if os.path.exists(path) else None
        except ValueError:
            return None
        except InputError as error:
            raise Unavailable(str(error)) from None
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            return None
        return record if isinstance(record.get("releases"), dict) else None

    def records(self) -> Iterator[Record]:
        """Yield every package's record, by name."""
        return filter(None, map(self.read, self.names()))

    def write(self, name: str, record: Record) -> None:
        """Replace a package's record atomically; raises Unavailable and leaves what is there in force."""
        path = self._path(name)
        if not _is_ours(path):
            raise Unavailable(f"{path}: is no record of a package, so it stays as it is")
        fields = {"schema": SCHEMA, **record}
        replace_file(path, json.dumps(fields, ensure_ascii=False, separators=(",", ":")))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for writing; raises Unavailable when another update holds it or it is read-only."""
        path = self.folder / ".lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise Unavailable(f"{self.folder}: cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Unavailable(f"{self.folder}: another update is running") from None
        finally:
            os.close(handle)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def _is_ours(path: Path) -> bool:
    """True for a record however damaged, and for what is not there or empty."""
    try:
        with open_input(path) as stream:
            opening = stream.read(80)
    except (OSError, InputError):
        return True  # writing says what is wrong
    return not opening or _OPENING.match(opening) is not None
