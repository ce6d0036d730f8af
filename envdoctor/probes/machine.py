"""The machine as the probes see it: a file tree, an environment and a way to load libraries."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, List, Mapping, Optional

Json = Dict[str, Any]
MAX_TEXT_BYTES = 1 << 20


class Machine:
    """Where probes look. Tests give another `root`, `environ` and `load_library`."""

    def __init__(
        self,
        python: Optional[str] = None,
        root: str = "",
        environ: Optional[Mapping[str, str]] = None,
        load_library: Optional[Callable[[str], Any]] = None,
    ) -> None:
        self.python = python
        self.root = root.rstrip("/")
        self.environ = os.environ if environ is None else environ
        self.load_library = load_library or load_shared_library

    def at(self, path: str) -> str:
        """Return where an absolute path of the examined machine lies for us."""
        return self.root + path

    def text(self, path: str, limit: int = MAX_TEXT_BYTES) -> Optional[str]:
        """Return a file's text, or None when it cannot be read."""
        return read_text(self.at(path), limit)

    def names(self, path: str) -> List[str]:
        """Return a folder's entries in order; none when it cannot be read."""
        return list_names(self.at(path))

    def exists(self, path: str) -> bool:
        """True when something lies there."""
        return os.path.exists(self.at(path))

    def real(self, path: str) -> str:
        """Return a path with its links followed, in the examined machine's terms."""
        target = os.path.realpath(self.at(path))
        root = os.path.realpath(self.root) if self.root else ""
        return target[len(root) :] if root and target.startswith(root) else target

    def which(self, name: str) -> Optional[str]:
        """Return the first executable of that name on PATH, in the examined machine's terms."""
        for folder in self.environ.get("PATH", "").split(os.pathsep):
            path = folder.rstrip("/") + "/" + name
            if folder.startswith("/") and os.access(self.at(path), os.X_OK) and os.path.isfile(self.at(path)):
                return path
        return None


def load_shared_library(name: str) -> Any:
    """Load a shared library by ctypes; raises OSError."""
    import ctypes

    return ctypes.CDLL(name)


def read_text(path: str, limit: int = MAX_TEXT_BYTES) -> Optional[str]:
    """Return at most `limit` bytes of a file as text, or None when it cannot be read."""
    data = read_bytes(path, limit)
    return None if data is None else data.decode("utf-8", "replace")


def read_bytes(path: str, limit: int = MAX_TEXT_BYTES) -> Optional[bytes]:
    """Return at most `limit` bytes of a regular file (or of /proc and /sys), or None."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    try:
        return _read_all(handle, limit)
    except OSError:
        return None
    finally:
        os.close(handle)


def _read_all(handle: int, limit: int) -> bytes:
    chunks, left = [], limit
    while left > 0:
        chunk = os.read(handle, min(left, 65536))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def list_names(path: str) -> List[str]:
    """Return a folder's printable entries in order; none when it cannot be read."""
    try:
        return sorted(name for name in os.listdir(path) if name.isprintable())
    except (OSError, ValueError):
        return []


def observed(value: Any, source: str) -> Json:
    """Return an observed fact in plain JSON terms."""
    return {"value": value, "source": source}


def unknown(reason: str) -> Json:
    """Return an unknown fact with its reason in plain JSON terms."""
    return {"unknown": reason}


def fact(value: Any, source: str, reason: str) -> Json:
    """Return an observed fact, or an unknown one when `value` is None."""
    return unknown(reason) if value is None else observed(value, source)


def without_empty(values: Json) -> Json:
    """Return the entries that hold something; None and what is empty are the format's defaults."""
    return {
        key: value for key, value in values.items() if value is not None and value not in ("", (), [], {})
    }


def parse_driver_version(text: str) -> Optional[str]:
    """Return the version that a text opens with, `580.95.05`, or None."""
    match = re.match(r"\d{2,4}(?:\.\d{1,5}){1,3}(?![\d.])", text.strip())
    return match.group() if match else None
