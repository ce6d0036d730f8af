"""Answers kept by content: the same request on the same facts is not solved twice.

An answer is kept only where all that it hangs on is kept with it: the words of the command, the text of plain
requirement files, the interpreter, every fact that ships or was updated, and our own code. What reads a
machine, another file, the environment or an index is solved anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envdoctor import __version__
from envdoctor import lazy_re as re
from envdoctor.errors import EnvdoctorError
from envdoctor.fact_files import find_folder, snapshot_paths, user_folder, user_releases_folder
from envdoctor.files import replace_file
from envdoctor.inputs import MEBIBYTE, read_input
from envdoctor.values import dataclass

PLACES = 64
"""So many answers are kept at most: each request has a place, and a newer one there takes it."""
_ALONE = 0o600
_COMMENT = re.compile(r"(?:^|\s)#.*", re.MULTILINE)
_PLAIN = re.compile(r"\s*[A-Za-z0-9][^/$\\]*")
"""A requirement that names nothing but a package: no option, path, URL or variable."""
_ROOMS = ("cli", "facts", "matrix", "report", "solve", "target")
_MACHINE = ("gpu", "driver", "python_version", "platform")
_WORDS = ("requests", "files", "format", "output", "exclude_newer", "allow_source", "index_url", "offline")


@dataclass(frozen=True)
class Told:
    """What a command said: its output, its notes for the person, and its exit code."""

    text: str
    notes: Sequence[str]
    code: int


@dataclass(frozen=True)
class Place:
    """Where an answer is kept, and what it is the answer to."""

    path: Path
    asked: str

    def read(self) -> Told | None:
        """Return what is kept; None for nothing, or nothing that answers just this."""
        try:
            kept = json.loads(read_input(self.path))
            told = Told(str(kept["text"]), list(map(str, kept["notes"])), int(kept["code"]))
            return told if kept["asked"] == self.asked else None
        except (EnvdoctorError, OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, told: Told) -> None:
        """Keep an answer for its owner alone; where nothing can be written, none is kept."""
        kept = {"asked": self.asked, "text": told.text, "notes": list(told.notes), "code": told.code}
        with contextlib.suppress(EnvdoctorError, OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, json.dumps(kept, ensure_ascii=False), _ALONE)


def place_of(words: Mapping[str, Any]) -> Place | None:
    """Return where the answer to a command (its options by name) is kept; None where it cannot be."""
    plain = all(file.endswith((".txt", ".in")) for file in words["files"])  # a project's names others
    elsewhere = (
        words["target"]
        or words["code"]
        or not plain
        or words["goal"] != "newest"
        or words["hashes"]
        or words["format"] == "pylock"
    )
    if elsewhere or not any(words[name] for name in _MACHINE) or not (words["requests"] or words["files"]):
        return None
    try:
        texts = ["\n".join(words["requests"]), *(_text(file) for file in words["files"])]
        if not all(_PLAIN.fullmatch(line) for text in texts for line in text.splitlines() if line.strip()):
            return None
        told = [words[name] for name in (*_WORDS, *_MACHINE)]
        asked = repr((told, texts, *_surroundings()))
    except (EnvdoctorError, OSError, ValueError):  # what cannot be read is told by whoever needs it
        return None
    return Place(Path(user_folder(), "answers") / f"{zlib.crc32(asked.encode()) % PLACES}.json", asked)


def _text(file: str) -> str:
    return _COMMENT.sub("", read_input(file, MEBIBYTE).decode())


def _surroundings() -> Iterator[object]:
    """Yield what tells the interpreter, our code and the facts from others: files by size and time."""
    libc = os.confstr("CS_GNU_LIBC_VERSION") if sys.platform == "linux" else ""
    yield __version__, tuple(sys.version_info), sys.platform, tuple(getattr(os, "uname", tuple)()), libc
    facts, code = Path(find_folder()), Path(__file__).parent.parent
    rooms = (code / room for room in _ROOMS)
    yield [_stamps(folder) for folder in (*rooms, facts, facts / "releases", Path(user_releases_folder()))]
    paths = snapshot_paths(facts)
    yield [(path, _stamp(os.stat(path))) for path in paths if os.path.isfile(path)]


def _stamps(folder: Path) -> list[tuple[str, tuple[int, int]]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, _stamp(entry.stat())) for entry in entries if entry.is_file())
    except FileNotFoundError:  # nobody updated anything
        return []


def _stamp(told: os.stat_result) -> tuple[int, int]:
    return told.st_size, told.st_mtime_ns
