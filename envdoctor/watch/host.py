"""The memory and disks around a run: what the machine and the control group still allow, and what is free."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from envdoctor.probes.cgroup import limit_files
from envdoctor.values import dataclass

_USED = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}
_EVENTS = {"memory.max": "memory.events", "memory.limit_in_bytes": "memory.oom_control"}
_CACHE = re.compile(rb"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)
_KILLS = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_NO_LIMIT = 1 << 60
SHM = "/dev/shm"


@dataclass(frozen=True, slots=True)
class HostReading:
    """What can still be had, in bytes: host memory and who sets the bound, kills so far, shared memory."""

    room_bytes: int | None
    bound: str
    oom_kills: int | None
    shm_bytes: int | None


class Host:
    """The host as a process sees it; files that are not there are passed over."""

    def __init__(self, pid: int | str = "self") -> None:
        self._groups = [path for path in limit_files(_text(f"/proc/{pid}/cgroup")) if os.path.exists(path)]

    def read(self) -> HostReading:
        """Read the bounds."""
        rooms = [room for room in (_machine(), *map(_group, self._groups)) if room is not None]
        room, bound = min(rooms) if rooms else (None, "not told")
        return HostReading(room, bound, self._kills(), free_bytes(SHM))

    def _kills(self) -> int | None:
        for path in self._groups:
            folder, name = os.path.split(path)
            match = _KILLS.search(_bytes(f"{folder}/{_EVENTS[name]}"))
            if match:
                return int(match[1])
        return None


def _machine() -> tuple[int, str] | None:
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE))
    if "MemAvailable" not in fields:
        return None
    return (int(fields["MemAvailable"]) + int(fields.get("SwapFree", 0))) << 10, "this machine's memory"


def _group(path: str) -> tuple[int, str] | None:
    folder, name = os.path.split(path)
    limit = _number(path)
    used = _number(f"{folder}/{_USED[name]}")
    if limit is None or used is None or limit >= _NO_LIMIT:
        return None
    match = _CACHE.search(_bytes(f"{folder}/memory.stat"))
    return limit - used + (int(match[1]) if match else 0), f"the control group's limit of {limit >> 20} MiB"


def free_bytes(path: str) -> int | None:
    """Return what an ordinary user may still write there; None where that is not told."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def least_free(paths: Iterable[str]) -> tuple[int, str] | None:
    """Return the fullest of some places."""
    found = [(free, path) for path in paths if (free := free_bytes(path)) is not None]
    return min(found, default=None)


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(1 << 16) or b""
    except OSError:
        return b""
