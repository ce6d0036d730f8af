"""Which file of a project's folder tells what it requires, where one leaves it to another; nothing is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.inputs import read_input_text
from envdoctor.solve.projects import PROJECT_FILES, read_manifest, told_beside
from envdoctor.solve.requests import Asked
from envdoctor.toml_text import parse_toml

_NAMED = re.compile(r"""["']([\w./-]{1,200}\.(?:txt|in))["']""")
_OF_REQUIREMENTS = re.compile(r"require|\bdeps\b")
_DYNAMIC = (
    ("setuptools", "dynamic", "dependencies", "file"),
    ("hatch", "metadata", "hooks", "requirements_txt", "files"),
)
"""Where a build's settings name the files that hold a project's requirements."""


def read_project(
    folder: Path, extras: Collection[str], read_file: Callable[[Path], Asked], opened: str = ""
) -> Asked | None:
    """Return what a project's folder says that it requires; None when no file of it tells.

    `opened` is the file that was asked for: that another one tells is said. Raises InputError naming a file
    that cannot be read.
    """
    for name in sorted(PROJECT_FILES, key=lambda name: name != opened):
        path = folder / name
        if not os.path.isfile(path):
            continue
        text = read_input_text(path)
        found = read_manifest(path, text, extras)
        if _tells(found):
            return Asked.joined((found, _said(name, opened)))
        named = list(dict.fromkeys(_files_named(name, text, folder)))
        if len(named) > 1 and name == "setup.py":
            from envdoctor.solve.literals import texts_behind  # dear to load

            meant = texts_behind(text)
            named = [one for one in named if one in meant]
        if len(named) == 1 or (named and name != "setup.cfg"):
            files = (read_file(folder / one) for one in named)
            told = told_beside(path, text)
            return Asked.joined((*files, told, _said(", ".join(named), opened or name)))
        if name == "pyproject.toml" and _is_whole(text):
            return None
    return None


def beside(path: Path) -> str:
    """Return a hint at files of requirements that stand beside a project's file that tells none."""
    names = sorted(os.listdir(path.parent)) if path.name.lower() in PROJECT_FILES else ()
    found = [name for name in names if _OF_REQUIREMENTS.search(name) and name.endswith((".txt", ".in"))]
    return f"; beside it stands {', '.join(found[:4])}: ask for it with -r" if found else ""


def _tells(asked: Asked) -> bool:
    return bool(asked.requests) or any(one.source for one in asked.carried)


def _said(name: str, opened: str) -> Asked:
    if name == opened or not opened:
        return Asked()
    return Asked(notes=(f"{opened} leaves the requirements to {name}: those are read",))


def _files_named(name: str, text: str, folder: Path) -> Iterator[str]:
    """Yield the requirement files, there in the folder, that a project's file names."""
    if name == "pyproject.toml":
        named = (file for keys in _DYNAMIC for file in _at(parse_toml(text).get("tool", {}), keys))
    else:
        named = (match[1] for match in _NAMED.finditer(text) if _OF_REQUIREMENTS.search(match[1]))
    return (file for file in named if os.path.isfile(folder / file))


def _at(table: Any, keys: tuple[str, ...]) -> list[str]:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return [table] if isinstance(table, str) else [one for one in table or () if isinstance(one, str)]


def _is_whole(text: str) -> bool:
    """True when a `[project]` says itself that it requires nothing: nothing else is read then by builds."""
    project = parse_toml(text).get("project")
    return isinstance(project, dict) and "dependencies" not in project.get("dynamic", ())
