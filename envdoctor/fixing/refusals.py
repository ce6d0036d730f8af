"""Which environments can be changed by exchange, and why the others are left alone."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from envdoctor.errors import Unavailable
from envdoctor.facts import Facts
from envdoctor.plan.conda import is_pixis

SYSTEM = "the system's package manager owns it (PEP 668): make a virtual environment, and fix that"


def check_changeable(facts: Facts) -> Path:
    """Return the folder of the examined environment; raises Unavailable where it must stay as it is."""
    environment = facts.environment
    prefix = environment.prefix.get()
    if prefix is None or environment.executable.get() is None:
        raise Unavailable("fix: the examined environment's folder is not known, nothing was changed")
    folder = Path(os.path.realpath(prefix))
    why = next(_reasons(facts, folder), None)
    if why is not None:
        raise Unavailable(f"fix: {folder} is left as it is: {why}")
    return folder


def _reasons(facts: Facts, folder: Path) -> Iterator[str]:
    environment = facts.environment
    if sys.platform not in ("linux", "darwin"):
        yield "environments are exchanged on Linux and macOS alone; type the plan's commands"
    if is_pixis(str(folder)):
        yield "pixi makes it from the project's manifest, which the plan's commands change: type them"
    if environment.kind.get() == "conda" and any((folder / name).is_dir() for name in ("condabin", "envs")):
        yield "it is conda's base environment, in which the others lie: make one, and fix that"
    if environment.kind.get() not in ("venv", "conda"):
        managed = any(folder.glob("lib/python3*/EXTERNALLY-MANAGED"))
        yield SYSTEM if managed else "it is no virtual environment: make one, and fix that"
    links = [path for path in _package_folders(folder) if not path.resolve().is_relative_to(folder)]
    yield from (f"{path} is a link to elsewhere" for path in links)
    gone = [text for text in environment.problems if "interpreter" in text and "is gone" in text]
    yield from gone
    yield from _of_folder(folder)


def _package_folders(folder: Path) -> Iterator[Path]:
    yield folder / "bin"
    yield from folder.glob("lib/python*/site-packages")


def _of_folder(folder: Path) -> Iterator[str]:
    try:
        told = folder.stat()
    except OSError as error:
        yield str(error.strerror)
        return
    if not (os.access(folder, os.W_OK | os.X_OK) and os.access(folder.parent, os.W_OK | os.X_OK)):
        yield "it, or the folder that holds it, cannot be written"
    if os.statvfs(folder).f_flag & getattr(os, "ST_RDONLY", 1):
        yield "its file system is mounted read-only"
    if os.path.ismount(folder):
        yield "it is a mount of its own, which cannot be exchanged"
    if told.st_uid != os.geteuid():
        yield f"it is shared: user {told.st_uid} owns it, and you are {os.geteuid()}"
    if told.st_mode & stat.S_IWOTH:
        yield "it is shared: everyone may write to it"
