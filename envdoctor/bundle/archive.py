"""Writing the archive: the same bytes for the same contents, whole or not at all, for its owner alone."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError, Unavailable

SCHEMA = "envdoctor.bundle/1"
MANIFEST = "MANIFEST.json"
# The earliest time that a ZIP entry can bear; a bundle tells no time of its own.
_TIME = (1980, 1, 1, 0, 0, 0)
_OWNER_READ_WRITE = 0o100600


def to_json_bytes(value: Any) -> bytes:
    """Return JSON in its one form here: sorted keys, one space of indentation, ASCII."""
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def make_manifest(
    files: Mapping[str, bytes], redactions: Mapping[str, int], tool: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the manifest: the digest and size of each file, and what was replaced, by kind and count."""
    return {
        "schema": SCHEMA,
        "tool": dict(tool),
        "files": {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in sorted(files.items())
        },
        "redactions": dict(sorted(redactions.items())),
    }


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a ZIP of `files`: sorted, at a fixed time, deflated."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _OWNER_READ_WRITE << 16
            entry.create_system = 3
            archive.writestr(entry, content)
    return stream.getvalue()


def write_new_file(path: Path, content: bytes, force: bool = False) -> None:
    """Write `path` atomically and readable by its owner alone.

    Raises InputError when it exists and `force` is false, Unavailable when it cannot be written.
    """
    if path.is_dir() or (not force and os.path.lexists(path)):
        raise InputError(f"{path}: exists already (--force replaces a file)")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            _put_in_place(temporary, path, force)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise Unavailable(f"{path}: cannot be written: {error.strerror or error}") from None


def _put_in_place(temporary: str, path: Path, force: bool) -> None:
    # mkstemp made it 0600. A link fails where a rename would overwrite what came to be meanwhile.
    if force:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise InputError(f"{path}: exists already (--force replaces a file)") from None
    except OSError:
        os.replace(temporary, path)
        return
    os.unlink(temporary)
