"""The environments that lie near: what a person may have meant when envdoctor's own was examined."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from envdoctor.facts import Facts
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.values import dataclass

ID = "OWN-ENVIRONMENT"
SHOWN = 6
_FOLDERS = (".venv", "venv", "env", ".env")
_CONDA = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")


@dataclass(frozen=True, slots=True)
class Nearby:
    """An environment by its interpreter: how it was found, and whether torch is among its folders."""

    python: str
    found: str
    has_torch: bool


def read_nearby(environ: Mapping[str, str], folder: Path, home: Path, own: str) -> tuple[Nearby, ...]:
    """Return the environments near `folder` but the one at the prefix `own`, those with torch first.

    Only names of folders are read; nothing is run.
    """
    seen: dict[str, Nearby] = {}
    for prefix, found in _prefixes(environ, folder, home):
        python = _interpreter(prefix)
        if python and os.path.realpath(prefix) != os.path.realpath(own):
            seen.setdefault(os.path.realpath(prefix), Nearby(str(python), found, _has_torch(prefix)))
    return tuple(sorted(seen.values(), key=lambda near: not near.has_torch))[:SHOWN]


def _prefixes(environ: Mapping[str, str], folder: Path, home: Path) -> Iterator[tuple[Path, str]]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT"):
        if value := environ.get(variable):
            yield Path(value), variable
    for parent in (folder, *list(folder.parents)[:2]):
        yield from ((parent / name, "beside the current folder") for name in _FOLDERS)
    yield from ((path, "poetry") for path in _children(home / ".cache/pypoetry/virtualenvs"))
    yield from ((path, "virtualenvwrapper") for path in _children(home / ".virtualenvs"))
    for name in _CONDA:
        yield home / name, "conda"
        yield from ((path, "conda") for path in _children(home / name / "envs"))
    yield Path("/opt/conda"), "conda"
    yield Path("/usr"), "the system's Python"


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:50]
    except OSError:
        return []


def _interpreter(prefix: Path) -> Path | None:
    for name in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        try:
            if (prefix / name).is_file():
                return prefix / name
        except OSError:
            return None
    return None


def _has_torch(prefix: Path) -> bool:
    sites = [*prefix.glob("lib/python3*/*-packages/torch"), *prefix.glob("Lib/site-packages/torch")]
    return any(site.is_dir() for site in sites[:4])


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was removed under us
        return Path("/")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # neither HOME nor a user of that number
        return Path("/")


def own_environment_note(facts: Facts) -> Finding | None:
    """Return a note for envdoctor's own environment where it has no torch to speak of.

    The commands examine the environments that lie near.
    """
    prefix = facts.environment.prefix.get()
    if prefix is None or facts.distribution("torch") is not None:
        return None
    near = read_nearby(os.environ, _current_folder(), _home(), prefix)
    commands = tuple(shlex.join(("envdoctor", "diagnose", "--python", one.python)) for one in near)
    words = ", ".join(f"{one.python} ({one.found}{', with torch' if one.has_torch else ''})" for one in near)
    return Finding(
        id=ID,
        severity=Severity.NOTE,
        summary="this is envdoctor's own environment, without torch: the machine was judged, no stack was",
        cause=f"Near lie {words}." if near else "No other environment was found near the current folder.",
        evidence=(Evidence("environment", prefix, "envdoctor's own interpreter"),),
        remedies=(Remedy("Examine the environment that you train or serve in.", commands),)
        if near
        else (
            Remedy(
                "Name the interpreter that you train or serve with.", ("envdoctor diagnose --python PATH",)
            ),
        ),
        certainty=Certainty.CERTAIN,
    )
