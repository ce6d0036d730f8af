"""The machine as the probes see it: a file tree, an environment and a way to load libraries."""

from __future__ import annotations

import os
import re
import threading

from .files import MAX_TEXT_BYTES, Unreadable, list_names, read_bytes, read_text
from .typed import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

Json = Dict[str, Any]
MAX_REASONS = 3


class Machine:
    """Where probes look. Tests give another `root` and `environ`.

    `load_library` loads NVML into this very process, which tests and the child made for it do alone.
    """

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
        self.load_library = load_library
        self._lock = threading.Lock()
        self._told: Dict[str, Any] = {}

    def at(self, path: str) -> str:
        """Return where an absolute path of the examined machine lies for us."""
        return self.root + path

    def text(self, path: str, limit: int = MAX_TEXT_BYTES) -> Optional[str]:
        """Return a file's text, or None when it cannot be read."""
        try:
            return read_text(self.at(path), limit)
        except Unreadable:
            return None

    def data(self, path: str, limit: int) -> bytes:
        """Return at most `limit` bytes of a file, empty when it cannot be read."""
        try:
            return read_bytes(self.at(path), limit) or b""
        except Unreadable:
            return b""

    def names(self, path: str) -> List[str]:
        """Return a folder's entries in order; none when it cannot be read."""
        try:
            return list_names(self.at(path))
        except Unreadable:
            return []

    def exists(self, path: str) -> bool:
        """True when something lies there."""
        return os.path.exists(self.at(path))

    def is_folder(self, path: str) -> bool:
        """True when a folder lies there."""
        return os.path.isdir(self.at(path))

    def real(self, path: str) -> str:
        """Return a path with its links followed, in the examined machine's terms."""
        target = os.path.realpath(self.at(path))
        root = os.path.realpath(self.root) if self.root else ""
        return target[len(root) :] if root and target.startswith(root) else target

    def once(self, name: str, read: Callable[[], Any]) -> Any:
        """Return what `read` returns or raise what it raises, reading only the first time."""
        with self._lock:
            if name not in self._told:
                try:
                    self._told[name] = read()
                except Exception as error:
                    self._told[name] = error
            told = self._told[name]
        if isinstance(told, Exception):
            raise told
        return told

    def which(self, name: str) -> Optional[str]:
        """Return the first executable of that name on PATH, in the examined machine's terms."""
        for folder in self.environ.get("PATH", "").split(os.pathsep):
            path = folder.rstrip("/") + "/" + name
            if folder.startswith("/") and self.is_program(path):
                return path
        return None

    def is_program(self, path: str) -> bool:
        """True for a file that may be executed."""
        return os.access(self.at(path), os.X_OK) and os.path.isfile(self.at(path))

    def may_run(self, path: str) -> bool:
        """True for a program of the system: what lies in an environment is read, never run."""
        places = (path, os.path.dirname(path))
        return self.is_program(path) and not any(map(self.in_environment, places))

    def in_environment(self, path: str) -> bool:
        """True for what lies in the examined environment, or in an active one."""
        places = [self.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
        if self.python:
            places += [self.python, os.path.dirname(os.path.dirname(os.path.abspath(self.python)))]
        prefixes = [os.path.realpath(place) for place in places if place and _is_environment(place)]
        return any(os.path.realpath(self.at(path)).startswith(prefix + os.sep) for prefix in prefixes)


def _is_environment(prefix: str) -> bool:
    return any(os.path.exists(os.path.join(prefix, name)) for name in ("pyvenv.cfg", "conda-meta"))


def load_shared_library(name: str) -> Any:
    """Load a shared library by ctypes; raises OSError."""
    import ctypes

    return ctypes.CDLL(name)


def observed(value: Any, source: str) -> Json:
    """Return an observed fact in plain JSON terms."""
    return {"value": value, "source": source}


def unknown(reason: str) -> Json:
    """Return an unknown fact with its reason in plain JSON terms."""
    return {"unknown": reason}


def fact(value: Any, source: str, reason: str) -> Json:
    """Return an observed fact, or an unknown one when `value` is None."""
    return unknown(reason) if value is None else observed(value, source)


def read_each(machine: Machine, readers: Iterable[Tuple[str, Callable[[Machine], Json]]]) -> Json:
    """Return what each reader tells under its name, unknown with the reason where it raises."""
    told: Json = {}
    for name, reader in readers:
        try:
            told[name] = reader(machine)
        except Exception as error:
            told[name] = unknown("%s: %s" % (type(error).__name__, error))
    return told


def unread_parts(part: str, reasons: Sequence[str]) -> Dict[str, str]:
    """Return why a part could not be read, a few reasons and the count of the others; empty without any."""
    told = list(dict.fromkeys(reasons))
    more = ["%d more" % (len(told) - MAX_REASONS)] if len(told) > MAX_REASONS else []
    return {part: "; ".join(told[:MAX_REASONS] + more)} if told else {}


def without_empty(values: Json) -> Json:
    """Return the entries that hold something; None and what is empty are the format's defaults."""
    return {key: value for key, value in values.items() if value or (value is not None and value == 0)}


def parse_driver_version(text: str) -> Optional[str]:
    """Return the version that a text opens with, `580.95.05`, or None."""
    match = re.match(r"\d{2,4}(?:\.\d{1,5}){1,3}(?![\d.])", text.strip())
    return match.group() if match else None
