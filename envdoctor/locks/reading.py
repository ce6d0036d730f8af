"""Reading a lock: whole, by a parser of its format. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from envdoctor.errors import InputError
from envdoctor.inputs import MEBIBYTE, parse_json, read_input_text
from envdoctor.locks.conda_locks import read_conda_lock, read_pixi
from envdoctor.locks.python_locks import read_pdm, read_pipfile, read_poetry, read_pylock
from envdoctor.locks.uv import read_uv
from envdoctor.locks.values import Lock, Unreadable
from envdoctor.toml_text import parse_toml

LIMIT = 64 * MEBIBYTE

Reader = Callable[[Mapping[str, Any], str], Lock]
_TOML = {"uv.lock": read_uv, "poetry.lock": read_poetry, "pdm.lock": read_pdm}
_YAML = {"pixi.lock": read_pixi, "conda-lock.yml": read_conda_lock, "conda-lock.yaml": read_conda_lock}


def read_lock(path: str | Path) -> Lock:
    """Return what a lock file puts in; raises InputError naming the file."""
    text = read_input_text(path, LIMIT)
    if not text.strip():
        raise InputError(f"{path}: empty")
    beside = Path(path).with_name("pyproject.toml")
    project = read_input_text(beside, LIMIT) if Path(path).name == "poetry.lock" and beside.is_file() else ""
    try:
        return parse_lock(Path(path).name, text, project)
    except Unreadable as error:
        raise InputError(f"{path}: no lock that can be read: {error}") from None


def parse_lock(name: str, text: str, project: str = "") -> Lock:
    """Return what a lock's text puts in, told by its file's name; raises Unreadable.

    `project` is the text of the pyproject.toml beside it.
    """
    read, document = _reader(name.lower()), _document(name.lower(), text)
    if not isinstance(document, Mapping):
        raise Unreadable("holds no table")
    try:
        if read is read_poetry and project:
            return read_poetry(document, text, parse_toml(project))
        return read(document, text)
    except Unreadable:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(" ".join(str(error).split())[:120] or type(error).__name__) from None


def _reader(name: str) -> Reader:
    if name == "pipfile.lock":
        return read_pipfile
    if name.endswith(".py.lock"):
        return read_uv
    if name.endswith((".yml", ".yaml")):
        return read_conda_lock
    return _TOML.get(name) or _YAML.get(name) or read_pylock


def _document(name: str, text: str) -> Any:
    try:
        if name == "pipfile.lock":
            return parse_json(text)
        if name in _YAML or name.endswith((".yml", ".yaml")):
            return _yaml(text)
        return parse_toml(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(" ".join(str(error).split())[:120] or type(error).__name__) from None


def _yaml(text: str) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise Unreadable(" ".join(str(error).split())[:120]) from None
