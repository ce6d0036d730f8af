"""Machines made of temporary files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envdoctor.probes.machine import Machine


def no_library(name: str) -> object:
    """Stand for a machine without NVIDIA's libraries."""
    raise OSError(f"{name}: cannot open shared object file")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of the temporary machine; `mode` makes it executable."""

    def writer(path: str, text: str | bytes = "", mode: int = 0o644) -> Path:
        target = tmp_path / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        target.chmod(mode)
        return target

    return writer


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Machine]:
    """Make a machine of the temporary folder; without NVML and variables unless given."""

    def maker(load_library: Callable[[str], object] = no_library, **environ: str) -> Machine:
        return Machine(root=str(tmp_path), environ=environ, load_library=load_library)

    return maker
