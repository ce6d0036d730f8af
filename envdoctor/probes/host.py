"""The machine around the GPUs: system, container and memory."""

from __future__ import annotations

import os
import re
import sys

from .cgroup import read_limit
from .machine import Json, Machine, fact, observed, read_each, unknown
from .typed import Callable, Optional, Tuple

SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows", "cygwin": "windows"}
MARKERS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/singularity", "singularity"))
CGROUP_NAMES = (("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc"))


def read(machine: Machine) -> Json:
    """Return the host's facts, each guarded on its own."""
    return {"host": read_each(machine, READERS)}


def _os(machine: Machine) -> Json:
    name = next((word for key, word in SYSTEMS.items() if sys.platform.startswith(key)), None)
    return fact(name, "Python", "not a system we know: %s" % sys.platform)


def _distro(machine: Machine) -> Json:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        match = re.search(r'^PRETTY_NAME="?([^"\n]+)"?', machine.text(path) or "", re.MULTILINE)
        if match:
            return observed(match.group(1), path)
    return unknown("no os-release file")


def _kernel(machine: Machine) -> Json:
    return observed(os.uname().release, "uname")


def _arch(machine: Machine) -> Json:
    name = os.uname().machine
    return observed({"arm64": "aarch64", "amd64": "x86_64"}.get(name.lower(), name), "uname")


def _glibc(machine: Machine) -> Json:
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        text = ""
    version = text.replace("glibc", "").strip() or None
    return fact(version, "confstr", "this C library is not glibc")


def _wsl(machine: Machine) -> Json:
    text = machine.text("/proc/version")
    return fact(
        None if text is None else "microsoft" in text.lower(),
        "/proc/version",
        "/proc/version is closed to us",
    )


def read_container(machine: Machine) -> Json:
    """Return what kind of container this is, or `none`."""
    if machine.environ.get("KUBERNETES_SERVICE_HOST"):
        return observed("kubernetes", "KUBERNETES_SERVICE_HOST")
    for name in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if machine.environ.get(name):
            return observed("singularity", name)
    for path, word in MARKERS:
        if machine.exists(path):
            return observed(word, path)
    groups = machine.text("/proc/1/cgroup")
    for key, word in CGROUP_NAMES:
        if key in (groups or ""):
            return observed(word, "/proc/1/cgroup")
    return fact(
        None if groups is None else "none", "/proc/1/cgroup", "nothing tells whether this is a container"
    )


def _hostname(machine: Machine) -> Json:
    return observed(os.uname().nodename, "uname")


def _cpu_count(machine: Machine) -> Json:
    try:
        return observed(len(os.sched_getaffinity(0)), "sched_getaffinity")
    except (AttributeError, OSError):
        return fact(os.cpu_count(), "Python", "the system does not tell")


def _meminfo(field: str) -> Callable[[Machine], Json]:
    def reader(machine: Machine) -> Json:
        match = re.search(r"^%s:\s+(\d+) kB" % field, machine.text("/proc/meminfo") or "", re.MULTILINE)
        return fact(
            int(match.group(1)) << 10 if match else None, "/proc/meminfo", "/proc/meminfo has no " + field
        )

    return reader


def _shm(machine: Machine) -> Json:
    """Return the size; none at all where there is no shared memory, or none that we may write to."""
    path = machine.at("/dev/shm")
    if not sys.platform.startswith("linux"):
        return unknown("only Linux has a /dev/shm")
    if not os.path.isdir(path):
        return observed(0, "/dev/shm, which is not there")
    if not os.access(path, os.W_OK | os.X_OK):
        return observed(0, "/dev/shm, which is closed to us for writing")
    return fact(_total_bytes(path), "/dev/shm", "/dev/shm does not tell its size")


def _total_bytes(path: str) -> Optional[int]:
    try:
        told = os.statvfs(path)
    except OSError:
        return None
    return told.f_frsize * told.f_blocks


READERS: Tuple[Tuple[str, Callable[[Machine], Json]], ...] = (
    ("os", _os),
    ("distro", _distro),
    ("kernel", _kernel),
    ("arch", _arch),
    ("glibc", _glibc),
    ("wsl", _wsl),
    ("container", read_container),
    ("hostname", _hostname),
    ("cpu_count", _cpu_count),
    ("memory_total_bytes", _meminfo("MemTotal")),
    ("memory_available_bytes", _meminfo("MemAvailable")),
    ("cgroup_limit_bytes", read_limit),
    ("shm_bytes", _shm),
)
FACTS = tuple("host." + name for name, _ in READERS)
