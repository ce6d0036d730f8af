"""Where the facts lie: the matrix's folder, and this user's newer ones.

The user's are `packages/` (the raw store) and `releases/` (what is made of it). Nothing here reads the rows.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from envdoctor.errors import Unavailable

SNAPSHOT = "snapshot.bin"


def user_folder() -> Path:
    """Return the user's data folder of envdoctor; it need not exist.

    On Linux it is worked out here, because platformdirs takes longer to import than a diagnosis may wait.
    """
    system: str = sys.platform
    if system == "linux":
        base = os.environ.get("XDG_DATA_HOME", "")
        return (Path(base) if base.startswith("/") else Path.home() / ".local" / "share") / "envdoctor"
    from platformdirs import user_data_path

    return user_data_path("envdoctor")


def user_releases_folder() -> Path:
    """Return where `matrix update` puts the snapshot and tables that replace the shipped ones."""
    return user_folder() / "releases"


def find_folder() -> Path:
    """Return the folder of the matrix: $ENVDOCTOR_MATRICES, the wheel's copy, or the checkout's.

    Raises Unavailable when there is none.
    """
    if override := os.environ.get("ENVDOCTOR_MATRICES"):
        return Path(override)
    package = Path(__file__).parent
    for folder in (package / "matrices", package.parent / "matrices"):
        if folder.is_dir():
            return folder
    raise Unavailable("the compatibility matrix is missing from this installation")


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the TOML files of a matrix folder by name; raises Unavailable."""
    try:
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.toml"))}
    except OSError as error:
        raise Unavailable(f"{folder}: the matrix cannot be read: {error.strerror}") from None


def sizes_of(folder: Path) -> tuple[dict[str, int], int]:
    """Return the TOML files' sizes in bytes by name, and the time of the last (ns); raises Unavailable."""
    try:
        files = {one.name: one.stat() for one in os.scandir(folder) if one.name.endswith(".toml")}
    except OSError as error:
        raise Unavailable(f"{folder}: the matrix cannot be read: {error.strerror}") from None
    last = max((told.st_mtime_ns for told in files.values()), default=0)
    return {name: told.st_size for name, told in files.items()}, last


def snapshot_paths(folder: Path) -> list[Path]:
    """Return where package facts may lie: $ENVDOCTOR_SNAPSHOT alone, else the user's and the shipped."""
    if override := os.environ.get("ENVDOCTOR_SNAPSHOT"):
        return [Path(override)]
    return [user_releases_folder() / SNAPSHOT, folder / "releases" / SNAPSHOT]
