"""The memory limit that control groups set, in both of their versions."""

from __future__ import annotations

import re

from .machine import Json, Machine, observed, unknown
from .typed import Iterator, List, Tuple

ROOT = "/sys/fs/cgroup"
NO_LIMIT = 1 << 60


def read_limit(machine: Machine) -> Json:
    """Return the lowest limit of our group and the groups around it, in bytes."""
    groups = machine.text("/proc/self/cgroup")
    if groups is None:
        return unknown("/proc/self/cgroup is closed to us")
    limits = [found for path in limit_files(groups) for found in _limit(machine, path)]
    if not limits:
        return unknown("no control group limits memory here")
    value, source = min(limits)
    return observed(value, source)


def limit_files(groups: str) -> Iterator[str]:
    """Yield the files that can hold a limit for `/proc/self/cgroup`'s groups, innermost first."""
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            folder, name = ROOT, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = ROOT + "/memory", "memory.limit_in_bytes"
        else:
            continue
        for part in _outward(path):
            yield folder + part + "/" + name


def _outward(path: str) -> List[str]:
    """Return `/a/b` as `/a/b`, `/a` and the root."""
    parts = [part for part in path.split("/") if part and part != ".."]
    return ["".join("/" + part for part in parts[:end]) for end in range(len(parts), -1, -1)]


def _limit(machine: Machine, path: str) -> List[Tuple[int, str]]:
    text = (machine.text(path) or "").strip()
    limit = int(text) if re.fullmatch(r"\d{1,20}", text) else NO_LIMIT
    return [(limit, path)] if limit < NO_LIMIT else []
