"""Virtual environments made of files, as small as the probes need them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def make_venv(folder: Path, version: str = "3.12.3", **settings: str) -> Path:
    """Make a virtual environment and return its packages folder."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin/python").chmod(0o755)
    lines = {"home": "/usr/bin", "version": version, **settings}
    (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    site = folder / f"lib/python{'.'.join(version.split('.')[:2])}/site-packages"
    site.mkdir(parents=True)
    return site


def install(
    site: Path,
    name: str,
    version: str,
    requires: Sequence[str] = (),
    installer: str = "pip",
    files: Sequence[str] = (),
) -> Path:
    """Install a distribution that holds `files`, and return its dist-info folder."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    headers = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\n" + "\n".join(headers) + "\n\nRequires-Dist: not-a-header\n"
    )
    (info / "INSTALLER").write_text(installer + "\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    for path in files:
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).touch()
    return info
