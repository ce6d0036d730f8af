"""Choosing the wheel to open: one a machine architecture, the newest ordinary CPython's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envdoctor.harvest.index_pages import IndexFile

ARCHITECTURES = ("x86_64", "aarch64")
_PYTHON = re.compile(r"-(?:cp|py)(\d)(\d{0,4})[.\w]{0,80}-(\w{1,40})-[^-]{1,400}\.whl$")


def linux_wheels(files: Iterable[IndexFile]) -> dict[str, IndexFile]:
    """Return the Linux wheel to read for each architecture; a plain `any` wheel stands for x86_64."""
    chosen: dict[str, IndexFile] = {}
    for file in sorted((f for f in files if f.is_wheel), key=_python_order):
        platform = file.filename[:-4].rpartition("-")[2]
        for architecture in ARCHITECTURES:
            if "linux" in platform and platform.endswith(architecture) and "musl" not in platform:
                chosen[architecture] = file
        if platform == "any":
            chosen.setdefault("x86_64", file)
    return {architecture: chosen[architecture] for architecture in ARCHITECTURES if architecture in chosen}


def _python_order(file: IndexFile) -> tuple[bool, int, int, str]:
    match = _PYTHON.search(file.filename)
    if match is None:
        return False, 0, 0, file.filename
    ordinary = not match.group(3).endswith("t")
    return ordinary, int(match.group(1)), int(match.group(2) or 0), file.filename
