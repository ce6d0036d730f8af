"""The texts that are judged: scripts and notebooks found under the paths given, within bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envdoctor.errors import InputError
from envdoctor.inputs import MEBIBYTE, parse_json, read_input
from envdoctor.upgrading.gone import Move
from envdoctor.values import dataclass

FILES = 20_000
LARGEST = 4 * MEBIBYTE
KEYED = (".yaml", ".yml", ".json", ".toml")
COMMANDED = (".sh", ".bash", ".slurm", ".sbatch", ".md", ".mk")
_KINDS = (".py", ".ipynb", *KEYED, *COMMANDED)
_REQUIRING = ("pyproject.toml", "setup.py", "setup.cfg", "environment.yml", "environment.yaml")
_LISTING = ("requirement", "constraint")
_RELEASE = re.compile(r"([a-z]\w{1,30}?)_v?_?(\d{1,2}(?:_\d{1,3}){1,3})")
_SKIPPED = frozenset((".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", "site-packages"))
_MADE = ("build", "dist", "env")
"""How folders are called that tools make; such a one with Python's files of its own is written by hand."""


@dataclass(frozen=True, slots=True)
class Source:
    """One text of Python: the file, where in it (a cell, or nothing), and its first line there."""

    file: str
    text: str
    cell: int = 0


def find_files(paths: Sequence[str]) -> list[Path]:
    """Return the files under the paths, in order; raises InputError for a path that is none."""
    found: dict[Path, None] = {}
    for name in paths:
        path = Path(name)
        if path.is_dir():
            found.update(dict.fromkeys(_below(path)))
        elif path.exists():
            found[path] = None
        else:
            raise InputError(f"{name}: no such file or folder")
    return list(found)


def _below(folder: Path) -> Iterator[Path]:
    count = 0
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not _is_left_out(Path(top, f)))
        for name in sorted(files):
            path = Path(top, name)
            if (name.endswith(_KINDS) or requires(path)) and count < FILES:
                count += 1
                yield path


def _is_left_out(folder: Path) -> bool:
    made = folder.name in _MADE and not any(folder.glob("*.py"))
    return made or folder.name in _SKIPPED or folder.is_symlink()


def is_for_another(path: Path, moves: Mapping[str, Move]) -> bool:
    """True for a file below a folder that is named for another release: `third_party/vllm_v_0_5_4`."""
    told = (_RELEASE.fullmatch(part) for part in path.parts[:-1])
    named = ((moves.get(found[1].replace("_", "-")), found[2].replace("_", ".")) for found in told if found)
    return any(move is not None and not str(move.new).startswith(version) for move, version in named)


def requires(path: Path) -> bool:
    """True for a file that lists requirements: those of a project, of pip and of conda."""
    listed = any(word in part for part in path.parts[-2:] for word in _LISTING)
    return path.name in _REQUIRING or (path.suffix in (".txt", ".in") and listed)


def read_text(path: Path) -> str | None:
    """Return a file's text; None for one that is too large or no text."""
    try:
        return read_input(path, LARGEST).decode("utf-8")
    except (InputError, UnicodeDecodeError):
        return None


def python_of(path: Path, text: str) -> Iterator[Source]:
    """Yield the Python in a script or notebook; lines that only IPython knows are blanked."""
    if path.suffix != ".ipynb":
        yield Source(str(path), text)
        return
    try:
        cells = parse_json(text)["cells"]
        for number, cell in enumerate(cells, 1):
            if cell["cell_type"] == "code":
                lines = cell["source"]
                yield Source(str(path), _plain("".join(lines)), number)
    except (ValueError, KeyError, TypeError, AttributeError):
        return


def _plain(cell: str) -> str:
    if cell.lstrip().startswith("%%"):
        return ""
    return "\n".join("" if line.lstrip()[:1] in ("!", "%", "?") else line for line in cell.split("\n"))
