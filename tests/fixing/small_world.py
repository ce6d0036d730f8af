"""Small real environments of small real wheels: no index, no network."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

UV = Path(sys.executable).with_name("uv")


def make_wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> None:
    """Write a wheel with one module that tells its version and imports what it requires."""
    info = f"{name}-{version}.dist-info"
    imports = "".join(f"import {one.partition('>')[0].partition('=')[0]}\n" for one in requires)
    told = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {
        f"{name}/__init__.py": f"{imports}VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{told}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:print\n",
    }
    record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def offer_wheels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write alphaline, which wants betaline 2, and two of that: the only wheels that an installer finds."""
    wheels = folder / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "alphaline", "1.0", ["betaline>=2"])
    make_wheel(wheels, "betaline", "1.0")
    make_wheel(wheels, "betaline", "2.1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "cache"))
    return wheels


def _digest(text: str) -> str:
    import base64

    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def make_environment(folder: Path, *wheels: str) -> Path:
    """Make a virtual environment without pip, install wheels as they are, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    if wheels:
        install(python, *wheels)
    return python


def install(python: Path, *wheels: str) -> None:
    """Install requirements without what they require."""
    argv = [str(UV), "pip", "install", "-q", "--no-deps", "--python", str(python), *wheels]
    subprocess.run(argv, check=True, env=dict(os.environ))


def fingerprint(folder: Path) -> str:
    """Return a digest of every name, mode, link, time and byte in a folder."""
    return hashlib.sha256(repr(sorted(states(folder).items())).encode()).hexdigest()


def states(folder: Path) -> dict[str, str]:
    """Return of each path in a folder its kind and mode, and a file's time and digest or a link's target."""
    found: dict[str, str] = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        more = ""
        if path.is_symlink():
            more = os.readlink(path)
        elif path.is_file():
            more = f"{status.st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        found[str(path.relative_to(folder))] = f"{status.st_mode:o} {more}"
    return found


def says(python: Path, code: str) -> str:
    """Return what a line of Python prints in an environment, writing no bytecode."""
    done = subprocess.run([str(python), "-B", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
