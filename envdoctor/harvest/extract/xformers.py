"""xformers: what its extension was built for, from the build record inside the wheel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envdoctor.fetch import Fetcher
from envdoctor.harvest.extract.wheels import linux_wheels
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip

_RECORD = "xformers/cpp_lib.json"


def covers(version: str) -> bool:
    """Return True: every release is worth a look."""
    return bool(version)


def read(fetcher: Fetcher, files: Sequence[IndexFile]) -> dict[str, Any]:
    """Return the build facts of one release, or `{"reason": ...}`; raises Unavailable."""
    wheel = linux_wheels(files).get("x86_64")
    if wheel is None:
        return {"reason": "no Linux wheel"}
    try:
        return parse_build_record(RemoteZip(fetcher, wheel.url).read(_RECORD)) | {"source": wheel.source}
    except BadArchive as problem:
        return {"reason": str(problem), "source": wheel.source}


def parse_build_record(body: bytes) -> dict[str, Any]:
    """Return torch, CUDA (`12.8`), Python, flash-attention version and architectures of a build record.

    Raises BadArchive for one that is malformed.
    """
    try:
        record = json.loads(body)
        version, environment = record["version"], record["env"]
        cuda = version["cuda"]
        return {
            "torch": version["torch"],
            "cuda": f"{cuda // 100}.{cuda % 100}" if isinstance(cuda, int) else None,
            "python": version.get("python"),
            "flash": version.get("flash"),
            "arch_list": (environment.get("TORCH_CUDA_ARCH_LIST") or "").split(),
        }
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BadArchive(f"{_RECORD} is malformed: {problem!r}") from None
