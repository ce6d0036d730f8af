"""Answers kept by content: the same request on the same facts is not solved twice.

An answer is kept only where its key holds all that it hangs on: the words of the command, the text of plain
requirement files, the interpreter, every fact that ships or was updated, and our own code. What reads a
machine, another file, the environment or an index is solved anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envdoctor import __version__
from envdoctor import lazy_re as re
from envdoctor.errors import EnvdoctorError
from envdoctor.files import replace_file
from envdoctor.inputs import MEBIBYTE, read_input
from envdoctor.matrix.load import find_folder, read_files
from envdoctor.matrix.snapshot import snapshot_paths
from envdoctor.matrix.user_data import user_folder, user_releases_folder
from envdoctor.values import dataclass

MOST = 64
"""So many answers are kept; the oldest go first."""
_ALONE = 0o600
_COMMENT = re.compile(rb"(?:^|\s)#[^\n]*")
_PLAIN = re.compile(rb"\s*[A-Za-z0-9][^/$\\\n]*")
_ROOMS = ("cli", "facts", "matrix", "report", "solve", "target")
_WORDS = ("requests", "files", "format", "output", "gpu", "driver", "python_version", "platform")
_WORDS = (*_WORDS, "exclude_newer", "allow_source", "index_url", "offline")


@dataclass(frozen=True)
class Told:
    """What a command said: its output, its notes for the person, and its exit code."""

    text: str
    notes: Sequence[str]
    code: int


def place_of(words: Mapping[str, Any]) -> Path | None:
    """Return where the answer to a command (its options by name) is kept; None where it cannot be."""
    machine = any(words[name] for name in ("gpu", "driver", "python_version", "platform"))
    told = words["target"] or words["goal"] != "newest" or words["hashes"] or words["format"] == "pylock"
    if told or not machine or not (words["requests"] or words["files"]):
        return None
    try:
        texts = ["\n".join(words["requests"]).encode(), *(read_input(f, MEBIBYTE) for f in words["files"])]
        if not all(_PLAIN.fullmatch(line) for text in texts for line in _lines(text)):
            return None
        key = hashlib.blake2b(repr([words[name] for name in _WORDS]).encode(), digest_size=20)
        for part in (*texts, *_surroundings()):
            key.update(b"%d:" % len(part) + part)
    except (EnvdoctorError, OSError, ValueError):  # what cannot be read is told by whoever needs it
        return None
    return user_folder() / "answers" / f"{key.hexdigest()}.json"


def _lines(text: bytes) -> Iterator[bytes]:
    return (line for line in _COMMENT.sub(b"", text).splitlines() if line.strip())


def _surroundings() -> Iterator[bytes]:
    """Yield the interpreter, our code and the facts."""
    yield repr((__version__, sys.version_info, sys.platform, os.environ.get("LANG"))).encode()
    if hasattr(os, "uname"):
        yield repr((os.uname().machine, os.confstr("CS_GNU_LIBC_VERSION"))).encode()
    for room in _ROOMS:
        with os.scandir(Path(__file__).parent.parent / room) as entries:
            files = sorted((entry.name, entry.stat()) for entry in entries if entry.is_file())
        yield repr([(name, told.st_size, told.st_mtime_ns) for name, told in files]).encode()
    folder = find_folder()
    yield from read_files(folder).values()
    for releases in (folder / "releases", user_releases_folder()):
        for path in sorted(releases.glob("*.json")):
            yield path.name.encode()
            yield path.read_bytes()
    for path in snapshot_paths(folder):
        yield path.read_bytes() if path.is_file() else b""


def read_kept(place: Path) -> Told | None:
    """Return what is kept there; None for nothing, or nothing that can be read."""
    try:
        told = json.loads(read_input(place))
        return Told(str(told["text"]), [str(note) for note in told["notes"]], int(told["code"]))
    except (EnvdoctorError, OSError, ValueError, KeyError, TypeError):
        return None


def keep(place: Path, told: Told) -> None:
    """Keep what was told for its owner alone, and let the oldest go; where that cannot be, nothing is kept."""
    text = json.dumps({"text": told.text, "notes": list(told.notes), "code": told.code}, ensure_ascii=False)
    with contextlib.suppress(EnvdoctorError, OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, text, _ALONE)
        kept = sorted(place.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-MOST]:
            old.unlink()
