"""bitsandbytes: which compiled libraries a wheel carries, from its zip directory alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from envdoctor.fetch import Fetcher
from envdoctor.harvest.extract.wheels import linux_wheels
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip

_LIBRARY = re.compile(r"(?:^|/)libbitsandbytes_(cpu|cuda|rocm|hip|xpu)(\d*)(_nocublaslt)?\.so$")


def covers(version: str) -> bool:
    """Return True: every release is worth a look."""
    return bool(version)


def read(fetcher: Fetcher, files: Sequence[IndexFile]) -> dict[str, Any]:
    """Return `{"platforms": {architecture: libraries}}` of one release; raises Unavailable."""
    platforms: dict[str, Any] = {}
    for architecture, wheel in linux_wheels(files).items():
        try:
            members = RemoteZip(fetcher, wheel.url).members
            platforms[architecture] = {**parse_libraries(members), "source": wheel.source}
        except BadArchive as problem:
            platforms[architecture] = {"reason": str(problem), "source": wheel.source}
    return {"platforms": platforms}


def parse_libraries(members: Iterable[str]) -> dict[str, Any]:
    """Return the CUDA, ROCm and XPU versions that have a library, as their file names write them."""
    found = [match.groups() for match in map(_LIBRARY.search, members) if match]
    versions = {kind: sorted({v for k, v, _ in found if k == kind and v}, key=int) for kind, _, _ in found}
    return {
        "cuda": versions.get("cuda", []),
        "nocublaslt": any(twin for _, _, twin in found),
        "rocm": versions.get("rocm", []) or versions.get("hip", []),
        "xpu": versions.get("xpu", []),
        "cpu": any(kind == "cpu" for kind, _, _ in found),
    }
