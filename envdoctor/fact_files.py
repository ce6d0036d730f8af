"""Where the facts lie: the matrix's folder, and this user's newer ones.

The user's are `packages/` (the raw store) and `releases/` (what is made of it). Nothing here reads the rows.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TypeAlias

from envdoctor.errors import Unavailable

if TYPE_CHECKING:
    from mmap import mmap
    from pathlib import Path

SNAPSHOT = "snapshot.bin"
Folder: TypeAlias = "str | Path"
"""Paths are texts here: pathlib takes a twentieth of a diagnosis to import."""
Bytes: TypeAlias = "bytes | mmap"


def user_folder() -> str:
    """Return the user's data folder of envdoctor; it need not exist.

    On Linux it is worked out here, because platformdirs takes longer to import than a diagnosis may wait.
    """
    system: str = sys.platform
    if system == "linux":
        base = os.environ.get("XDG_DATA_HOME", "")
        shared = base if base.startswith("/") else os.path.expanduser("~/.local/share")
        return os.path.join(shared, "envdoctor")
    from platformdirs import user_data_dir

    return user_data_dir("envdoctor")


def user_releases_folder() -> str:
    """Return where `matrix update` puts the snapshot and tables that replace the shipped ones."""
    return os.path.join(user_folder(), "releases")


def find_folder() -> str:
    """Return the folder of the matrix: $ENVDOCTOR_MATRICES, the wheel's copy, or the checkout's.

    Raises Unavailable when there is none.
    """
    if override := os.environ.get("ENVDOCTOR_MATRICES"):
        return override
    package = os.path.dirname(__file__)
    for parent in (package, os.path.dirname(package)):
        folder = os.path.join(parent, "matrices")
        if os.path.isdir(folder):
            return folder
    raise Unavailable("the compatibility matrix is missing from this installation")


def read_files(folder: Folder) -> dict[str, bytes]:
    """Return the TOML files of a matrix folder by name; raises Unavailable."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".toml"))
        return {name: read_file(os.path.join(folder, name)) for name in names}
    except OSError as error:
        raise Unavailable(f"{folder}: the matrix cannot be read: {error.strerror}") from None


def read_file(path: str) -> bytes:
    """Return a file's bytes; raises OSError."""
    with open(path, "rb") as stream:
        return stream.read()


def map_file(path: str) -> Bytes:
    """Return a file's bytes, of which only those that are looked at are read; raises OSError.

    Whoever replaces such a file writes another beside it first. Windows replaces none that is mapped.
    """
    if os.name != "posix":
        return read_file(path)
    from mmap import ACCESS_READ, mmap

    with open(path, "rb") as stream:
        try:
            return mmap(stream.fileno(), 0, access=ACCESS_READ)
        except ValueError:  # there is nothing in it
            return b""


def sizes_of(folder: Folder) -> tuple[dict[str, int], int]:
    """Return the TOML files' sizes in bytes by name, and the time of the last (ns); raises Unavailable."""
    try:
        files = {one.name: one.stat() for one in os.scandir(folder) if one.name.endswith(".toml")}
    except OSError as error:
        raise Unavailable(f"{folder}: the matrix cannot be read: {error.strerror}") from None
    last = max((told.st_mtime_ns for told in files.values()), default=0)
    return {name: told.st_size for name, told in files.items()}, last


def snapshot_paths(folder: Folder) -> list[str]:
    """Return where package facts may lie: $ENVDOCTOR_SNAPSHOT alone, else the user's and the shipped."""
    if override := os.environ.get("ENVDOCTOR_SNAPSHOT"):
        return [override]
    places = (user_releases_folder(), os.path.join(folder, "releases"))
    return [os.path.join(place, SNAPSHOT) for place in places]
