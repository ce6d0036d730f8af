"""torch: CUDA version, compiled architectures and C++ ABI of each Linux wheel.

`torch.cuda.get_arch_list()` returns one NUL-terminated literal of `libtorch_python.so`; the member is
inflated as it comes and the transfer stops at the literal, so that some 6 to 12 MB of a wheel are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from packaging.version import Version

from envdoctor.fetch import Fetcher
from envdoctor.harvest.extract.wheels import linux_wheels
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.remote_archive import BadArchive, RemoteZip

_LIBRARY = "torch/lib/libtorch_python.so"
_ARCH_LIST = re.compile(rb"((?:sm|compute)_\d{1,4}[af]?(?: (?:sm|compute)_\d{1,4}[af]?){1,64})\0")
_LONGEST_LITERAL = 512
_ASSIGNED = re.compile(r"^(__version__|cuda)\s*(?::[^=]*)?=\s*(?:'([^']*)'|None)\s*$", re.MULTILINE)
_ABI = re.compile(r"_GLIBCXX_USE_CXX11_ABI=([01])")


def covers(version: str) -> bool:
    """Return True from torch 1.12 on; older wheels carry no such literal."""
    return Version(version) >= Version("1.12")


def read(fetcher: Fetcher, files: Sequence[IndexFile]) -> dict[str, Any]:
    """Return `{"platforms": {architecture: facts}}` of one release; raises Unavailable."""
    platforms = {}
    for architecture, wheel in linux_wheels(files).items():
        try:
            platforms[architecture] = _read_wheel(RemoteZip(fetcher, wheel.url), wheel)
        except BadArchive as problem:
            platforms[architecture] = {"reason": str(problem), "source": wheel.source}
    return {"platforms": platforms}


def _read_wheel(archive: RemoteZip, wheel: IndexFile) -> dict[str, Any]:
    build = parse_version_file(archive.read("torch/version.py").decode("utf-8", "replace"))
    cmake = [m for m in archive.members if m.endswith("/TorchConfig.cmake")]
    config = archive.read(cmake[0]).decode("utf-8", "replace") if cmake else None
    return {
        "build": build.get("__version__"),
        "cuda": build.get("cuda"),
        "arch_list": _arch_list(archive) if build.get("cuda") else [],
        "cxx11_abi": None if config is None else parse_abi(config),
        "source": wheel.source,
    }


def parse_version_file(text: str) -> dict[str, str | None]:
    """Return `__version__` and `cuda` as `torch/version.py` assigns them."""
    return {name: value or None for name, value in _ASSIGNED.findall(text)}


def parse_abi(config: str) -> bool:
    """Return torch's C++11 ABI flag; since it is no longer set, it is the compiler's default, which is on."""
    match = _ABI.search(config)
    return match is None or match.group(1) == "1"


def _arch_list(archive: RemoteZip) -> list[str]:
    with closing(archive.stream(_LIBRARY)) as stream:
        return find_arch_list(stream)


def find_arch_list(chunks: Iterable[bytes]) -> list[str]:
    """Return the architectures in the first such literal of a library's bytes; raises BadArchive for none.

    The literal ends in NUL, but compilers may lay another string right before it.
    """
    kept = b""
    for chunk in chunks:
        window = kept + chunk
        match = _ARCH_LIST.search(window)
        if match:
            return match.group(1).decode().split(" ")
        kept = window[-_LONGEST_LITERAL:]
    raise BadArchive(f"{_LIBRARY} holds no list of architectures")
