"""CUDA's runtime libraries: every copy within reach, and which copy torch would load."""

from __future__ import annotations

import re

from .asking import NotKnown
from .elf import read_dynamic
from .files import Unreadable, list_names
from .interpreter import Interpreter, find_interpreter
from .library_paths import Copy, loader_copies
from .machine import Json, Machine, unread_parts, without_empty
from .typed import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

FACTS: Tuple[str, ...] = ()
LIBRARY = (
    r"lib(cudart|cudnn|nccl|nvJitLink|cusparse|cusparseLt|cublas|cublasLt|nvrtc|cufft|curand|cusolver|cupti"
    r"|nvshmem_host|cuda|nvidia-ml)(?:-[0-9a-f]{8})?\.so\.(\d+)(?:\.\d)?$"
)
DISTRIBUTIONS = {
    "cudart": "nvidia-cuda-runtime",
    "nvrtc": "nvidia-cuda-nvrtc",
    "cupti": "nvidia-cuda-cupti",
    "cublasLt": "nvidia-cublas",
    "nvshmem_host": "nvidia-nvshmem",
}
MAJOR_IS_CUDA = frozenset(("cudart", "nvrtc", "nvJitLink", "cublas", "cublasLt", "cupti"))
TORCH_LIBRARIES = ("libtorch_global_deps.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so")
TOOLKIT_FOLDERS = ("/usr/local/cuda/lib64", "/usr/local/cuda/compat", "/usr/local/cuda/lib64/compat")
ORDER = ("LD_LIBRARY_PATH", "wheel", "conda", "ldconfig")


class Wheels(NamedTuple):
    """The folders of wheels' libraries, and the versions of the distributions they came with."""

    folders: Tuple[str, ...]
    versions: Dict[str, str]


def read(machine: Machine) -> Json:
    """Return every copy of the libraries that torch and its extensions load."""
    try:
        interpreter: Optional[Interpreter] = find_interpreter(machine)
    except NotKnown:
        interpreter = None
    unread: List[str] = []
    wheels = read_wheels(interpreter, unread)
    copies = list(_copies(machine, interpreter, wheels, unread))
    bound = read_bound(interpreter, unread)
    winners = {copy.path for copy in choose(copies, bound)}
    found = [_library(machine, copy, wheels, copy.path in winners) for copy in copies]
    return without_empty({"libraries": found, "unread": unread_parts("libraries", unread)})


def _copies(
    machine: Machine, interpreter: Optional[Interpreter], wheels: Wheels, unread: List[str]
) -> Iterator[Copy]:
    seen: Set[Tuple[str, str]] = set()
    for copy in _candidates(machine, interpreter, wheels, unread):
        if re.match(LIBRARY, copy.soname) and (copy.soname, copy.path) not in seen:
            seen.add((copy.soname, copy.path))
            yield copy


def _candidates(
    machine: Machine, interpreter: Optional[Interpreter], wheels: Wheels, unread: List[str]
) -> Iterator[Copy]:
    for copy in loader_copies(machine):
        yield copy
    for folder in wheels.folders:
        for name in _names(folder, unread):
            yield Copy(name, folder + "/" + name, "wheel")
    if interpreter is not None and interpreter.kind == "conda":
        for name in _names(interpreter.prefix + "/lib", unread):
            yield Copy(name, interpreter.prefix + "/lib/" + name, "conda")
    for folder in TOOLKIT_FOLDERS:
        for name in machine.names(folder):
            yield Copy(name, folder + "/" + name, "toolkit")


def _names(folder: str, unread: List[str]) -> List[str]:
    try:
        return list_names(folder)
    except Unreadable as error:
        unread.append(str(error))
        return []


def read_wheels(interpreter: Optional[Interpreter], unread: List[str]) -> Wheels:
    """Return where the environment's wheels keep their libraries; adds to `unread` what cannot be read."""
    folders: List[str] = []
    versions: Dict[str, str] = {}
    for site in interpreter.sites if interpreter else ():
        folders += _library_folders(site, unread)
        for entry in _names(site, unread):
            if entry.startswith("nvidia_") and entry.endswith(".dist-info"):
                name, _, version = entry[: -len(".dist-info")].partition("-")
                versions.setdefault(name.replace("_", "-").lower(), version)
    return Wheels(tuple(folders), versions)


def _library_folders(site: str, unread: List[str]) -> List[str]:
    parts = [name for name in _names(site + "/nvidia", unread) if not name.startswith("_")]
    return ["%s/nvidia/%s/lib" % (site, name) for name in parts] + [site + "/torch/lib"]


def read_bound(interpreter: Optional[Interpreter], unread: List[str]) -> Set[str]:
    """Return the libraries that torch finds by its own RPATH, which comes before LD_LIBRARY_PATH."""
    bound: Set[str] = set()
    for site in interpreter.sites if interpreter else ():
        for name in TORCH_LIBRARIES:
            try:
                dynamic = read_dynamic("%s/torch/lib/%s" % (site, name))
            except Unreadable as error:
                unread.append(str(error))
                continue
            if dynamic is not None and dynamic.rpath and not dynamic.runpath:
                bound.update(dynamic.needed)
    return bound


def choose(copies: List[Copy], bound: Set[str]) -> List[Copy]:
    """Return the copies that torch would load; what only a toolkit has is out of the loader's reach."""
    chosen: Dict[str, Copy] = {}
    held = _held(copies)
    for copy in copies:
        if copy.origin not in ORDER or copy.soname not in held.get(_name(copy), (copy.soname,)):
            continue
        rival = chosen.get(copy.soname)
        if rival is None or _rank(copy, bound) < _rank(rival, bound):
            chosen[copy.soname] = copy
    return list(chosen.values())


def _held(copies: List[Copy]) -> Dict[str, Set[str]]:
    """Return the generations of each library that the environment itself holds: torch asks for no other."""
    held: Dict[str, Set[str]] = {}
    for copy in copies:
        if copy.origin in ("wheel", "conda"):
            held.setdefault(_name(copy), set()).add(copy.soname)
    return held


def _name(copy: Copy) -> str:
    match = re.match(LIBRARY, copy.soname)
    return match.group(1) if match else copy.soname


def _rank(copy: Copy, bound: Set[str]) -> int:
    return -1 if copy.origin == "wheel" and copy.soname in bound else ORDER.index(copy.origin)


def _library(machine: Machine, copy: Copy, wheels: Wheels, wins: bool) -> Json:
    match = re.match(LIBRARY, copy.soname)
    assert match is not None
    name, major = match.group(1), int(match.group(2))
    real = machine.real(copy.path)
    distribution = _distribution(name, copy.path, wheels.versions) if copy.origin == "wheel" else None
    version = wheels.versions[distribution] if distribution else parse_version(real)
    return without_empty(
        {
            "name": name,
            "path": copy.path,
            "origin": copy.origin,
            "version": version,
            "cuda_major": cuda_major(name, major, real, distribution),
            "wins": wins or None,
        }
    )


def _distribution(name: str, path: str, versions: Dict[str, str]) -> Optional[str]:
    """Return the wheel that a library came with; None when two could be meant."""
    base = DISTRIBUTIONS.get(name, "nvidia-" + name.lower())
    matching = [one for one in versions if one == base or re.fullmatch(re.escape(base) + r"-cu\d+", one)]
    major = re.search(r"/nvidia/cu(\d+)/", path)
    if major and len(matching) > 1:
        matching = [one for one in matching if one == base or one.endswith("-cu" + major.group(1))]
    return matching[0] if len(matching) == 1 else None


def parse_version(path: str) -> Optional[str]:
    """Return the full version that a library's file name carries, or None."""
    match = re.search(r"\.so\.(\d+\.\d[\d.]*)$", path)
    return match.group(1) if match else None


def cuda_major(name: str, major: int, path: str, distribution: Optional[str]) -> Optional[int]:
    """Return the CUDA major that a copy belongs to: by its own number, its wheel or its folder."""
    if name in MAJOR_IS_CUDA:
        return major
    told = re.search(r"-cu(\d+)$", distribution or "") or re.search(r"/(?:cuda-|nvidia/cu)(\d+)", path)
    return int(told.group(1)) if told else None
