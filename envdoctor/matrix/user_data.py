"""Where this user's newer facts live: `packages/` (the raw store) and `releases/` (what is made of it)."""

from __future__ import annotations

import os
import sys
from pathlib import Path


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
