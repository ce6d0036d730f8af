"""The archive: the same bytes for the same contents."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

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
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _OWNER_READ_WRITE << 16
            entry.create_system = 3
            archive.writestr(entry, content)
    return stream.getvalue()
