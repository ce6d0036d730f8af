"""Where the dynamic loader looks: LD_LIBRARY_PATH, then ldconfig's cache or the usual folders."""

from __future__ import annotations

import os
import struct

from .machine import Machine
from .typed import Collection, Iterator, List, NamedTuple, Optional, Tuple

CACHE = "/etc/ld.so.cache"
MAGIC = b"glibc-ld.so.cache1.1"
HEADER, ENTRY = 48, struct.Struct("<iIIIQ")
ABIS_OF_64_BITS = (0x0300, 0x0A00)
MAX_CACHE_BYTES = 16 << 20
USUAL_FOLDERS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
OF_CUDA = ("libcu", "libnv", "libnccl")
OF_CUDA_IN_BYTES = tuple(name.encode() for name in OF_CUDA)
NVML = (
    "libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
)
NVML_NOT_FOUND = "libnvidia-ml.so.1 was not found: no NVIDIA driver is installed where this runs"


class Copy(NamedTuple):
    """One copy of a library: the name it is asked for by, its path, and how it is reached."""

    soname: str
    path: str
    origin: str


def find_libraries(machine: Machine, sonames: Collection[str]) -> List[Copy]:
    """Return the copies of these libraries in the loader's order."""
    return [copy for copy in loader_copies(machine) if copy.soname in sonames]


def loader_copies(machine: Machine) -> Iterator[Copy]:
    """Yield every library of LD_LIBRARY_PATH and of CUDA that the loader can reach, in its order."""
    for folder in search_path(machine):
        for name in machine.names(folder):
            if ".so" in name:
                yield Copy(name, folder + "/" + name, "LD_LIBRARY_PATH")
    for name, path in machine.once(CACHE, lambda: _system_libraries(machine)):
        yield Copy(name, path, "ldconfig")


def _system_libraries(machine: Machine) -> List[Tuple[str, str]]:
    cache = machine.data(CACHE, MAX_CACHE_BYTES)
    return parse_cache(cache) if MAGIC in cache else usual_libraries(machine)


def loader_choice(copies: List[Copy]) -> Optional[Copy]:
    """Return the copy that the loader takes of those in its order, if any."""
    return copies[0] if copies else None


def search_path(machine: Machine) -> List[str]:
    """Return LD_LIBRARY_PATH's absolute folders, each once."""
    folders = [part.rstrip("/") for part in machine.environ.get("LD_LIBRARY_PATH", "").split(":")]
    return list(dict.fromkeys(part for part in folders if os.path.isabs(part)))


def parse_cache(data: bytes) -> List[Tuple[str, str]]:
    """Read CUDA's libraries in ldconfig's cache as (soname, path); empty when it is none of this format."""
    start = data.find(MAGIC)
    if start < 0 or len(data) < start + HEADER:
        return []
    count = struct.unpack_from("<I", data, start + len(MAGIC))[0]
    at = start + HEADER
    end = min(len(data), at + count * ENTRY.size)
    return [
        (_string(data, start + name), _string(data, start + path))
        for flags, name, path, _, _ in ENTRY.iter_unpack(
            data[at : at + (end - at) // ENTRY.size * ENTRY.size]
        )
        if flags & 0xFF00 in ABIS_OF_64_BITS and data.startswith(OF_CUDA_IN_BYTES, start + name)
    ]


def _string(data: bytes, at: int) -> str:
    return data[at : data.find(b"\0", at)].decode("utf-8", "replace")


def usual_libraries(machine: Machine) -> List[Tuple[str, str]]:
    """Return the libraries of the folders that a loader without a cache searches."""
    return [
        (name, folder + "/" + name)
        for folder in USUAL_FOLDERS
        for name in machine.names(folder)
        if name.startswith(OF_CUDA) and ".so" in name
    ]
