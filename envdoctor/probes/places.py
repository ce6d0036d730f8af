"""Variables that name a folder, a file, a compiler or a network interface which is not there or not ours."""

from __future__ import annotations

import os
import re

from .machine import Json, Machine
from .typed import Callable, Dict, List, Optional, Tuple

FACTS: Tuple[str, ...] = ()
NETWORK, INFINIBAND = "/sys/class/net", "/sys/class/infiniband"


def read(machine: Machine) -> Json:
    """Return what is wrong with the place that a variable names, by variable."""
    told = {name: machine.environ.get(name, "") for name in CHECKS}
    found = {name: CHECKS[name](machine, value) for name, value in told.items() if value}
    astray = {name: why for name, why in found.items() if why}
    return {"astray": astray} if astray else {}


def _toolkit(machine: Machine, value: str) -> Optional[str]:
    if not machine.is_folder(value):
        return "%s is no folder" % value
    return None if machine.exists(value.rstrip("/") + "/bin/nvcc") else "%s holds no bin/nvcc" % value


def _cache(machine: Machine, value: str) -> Optional[str]:
    """A folder that is made when it is not there, and written to."""
    if not value.startswith("/"):
        return None
    path = value
    while not machine.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    if not machine.is_folder(path):
        return "%s is no folder" % path
    return None if os.access(machine.at(path), os.W_OK | os.X_OK) else "%s is closed to us for writing" % path


def _folder(machine: Machine, value: str) -> Optional[str]:
    return _cache(machine, value) if machine.exists(value) else "%s is not there" % value


def _preloaded(machine: Machine, value: str) -> Optional[str]:
    missing = [
        path for path in re.split(r"[ :]+", value) if path.startswith("/") and not machine.exists(path)
    ]
    return "not there: " + ", ".join(missing[:4]) if missing else None


def _compiler(machine: Machine, value: str) -> Optional[str]:
    program = (value.split() or [""])[0]
    there = machine.is_program(program) if program.startswith("/") else machine.which(program) is not None
    return None if there else "no program %s" % program


def _socket_names(machine: Machine, value: str) -> Optional[str]:
    """NCCL's list: prefixes, `=` for whole names, `^` for those to leave out."""
    here = machine.names(NETWORK)
    names = [name for name in value.lstrip("^").lstrip("=").split(",") if name]
    exact = value.lstrip("^").startswith("=")
    matched = [one for one in here if any(one == name if exact else one.startswith(name) for name in names)]
    left = [one for one in here if one not in matched] if value.startswith("^") else matched
    return None if left or not here else _absent(value, here)


def _exact_names(machine: Machine, value: str) -> Optional[str]:
    here = machine.names(NETWORK)
    missing = [name for name in value.split(",") if name and name not in here]
    return _absent(",".join(missing), here) if missing and here else None


def _adapters(machine: Machine, value: str) -> Optional[str]:
    here = machine.names(INFINIBAND)
    names = [name.partition(":")[0] for name in value.lstrip("=").split(",") if name]
    if value.startswith("^") or any(one.startswith(name) for one in here for name in names):
        return None
    return "no InfiniBand adapter %s; here are: %s" % (value, ", ".join(here[:16]) or "none")


def _absent(names: str, here: List[str]) -> str:
    return "no network interface %s; here are: %s" % (names, ", ".join(here[:16]))


CHECKS: Dict[str, Callable[[Machine, str], Optional[str]]] = {
    "CUDA_HOME": _toolkit,
    "CUDA_PATH": _toolkit,
    "HF_HOME": _cache,
    "HF_HUB_CACHE": _cache,
    "HUGGINGFACE_HUB_CACHE": _cache,
    "HF_DATASETS_CACHE": _cache,
    "TORCH_HOME": _cache,
    "TORCH_EXTENSIONS_DIR": _cache,
    "TORCHINDUCTOR_CACHE_DIR": _cache,
    "TRITON_CACHE_DIR": _cache,
    "XDG_CACHE_HOME": _cache,
    "TMPDIR": _folder,
    "LD_PRELOAD": _preloaded,
    "CC": _compiler,
    "CXX": _compiler,
    "CUDAHOSTCXX": _compiler,
    "NCCL_SOCKET_IFNAME": _socket_names,
    "GLOO_SOCKET_IFNAME": _exact_names,
    "TP_SOCKET_IFNAME": _exact_names,
    "NCCL_IB_HCA": _adapters,
}
