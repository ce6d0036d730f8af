"""Free room where models and packages are written; a probe of its own, for network file systems hang."""

from __future__ import annotations

import os
import sys

from .machine import Json, Machine
from .typed import Dict, Optional, Tuple

FACTS: Tuple[str, ...] = ()


def read(machine: Machine) -> Json:
    """Return the free bytes at each place."""
    places = read_disk(machine)
    return {"host": {"disk_free_bytes": places}} if places else {}


def read_disk(machine: Machine) -> Dict[str, int]:
    """Return the free bytes at the places that models, kernels and packages are written to."""
    free = {name: _free_bytes(machine.at(path)) for name, path in cache_places(machine).items()}
    return {name: size for name, size in free.items() if size is not None}


def cache_places(machine: Machine) -> Dict[str, str]:
    """Return where Hugging Face and torch keep their caches, and where temporary files and packages go."""
    environ = machine.environ
    home = environ.get("HOME") or "/"
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    hub = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE")
    hub = hub or os.path.join(environ.get("HF_HOME") or os.path.join(cache, "huggingface"), "hub")
    return {
        "hf_cache": hub,
        "torch_cache": environ.get("TORCH_HOME") or os.path.join(cache, "torch"),
        "tmp": environ.get("TMPDIR") or "/tmp",
        "prefix": _prefix(machine),
    }


def _prefix(machine: Machine) -> str:
    active = machine.environ.get("VIRTUAL_ENV") or machine.environ.get("CONDA_PREFIX")
    place = machine.python or active or sys.executable or sys.prefix
    return place if os.path.isdir(place) else os.path.dirname(os.path.dirname(os.path.abspath(place)))


def _free_bytes(path: str) -> Optional[int]:
    """Return the free bytes of the file system that a path lies on, or would lie on."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    try:
        told = os.statvfs(path)
    except OSError:
        return None
    return told.f_frsize * told.f_bavail
