"""The processes that descend from one, as Linux' /proc tells them; elsewhere they are not known.

Read by hand: a general library asks each process several questions and all processes for their parents,
which at five readings a second costs more than the two hundredths of a core that watching may take.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
MOST_READ = 64
"""Processes of a tree whose memory is read at each sampling; of more, the largest and a share by turns."""


GONE = (b"", b"Z", b"X")
"""The states of a process that runs no more."""


def state_of(pid: int) -> bytes:
    """Return the letter of a process' state, as proc(5) has it; empty where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read(512).rpartition(b")")[2][1:2]
    except OSError:
        return b""


@dataclass(frozen=True, slots=True)
class TreeReading:
    """What a tree holds: its processes, their memory without mapped files, their processor seconds."""

    pids: frozenset[int]
    anon_bytes: int
    cpu_s: float


@dataclass(slots=True)
class _Process:
    """One process as it was last read."""

    parent: int
    started: int
    anon: int = 0
    cpu: float = 0.0
    stopped: bool = False


class Tree:
    """The descendants of `root` but for `apart`; with `whole`, the root too."""

    def __init__(
        self, root: int, apart: Iterable[int] = (), whole: bool = False, proc: str = "/proc"
    ) -> None:
        self._root = root
        self._apart = frozenset(apart)
        self._whole = whole
        self._proc = proc
        self._known: dict[int, int] = {}
        self._members: dict[int, _Process] = {}
        self._ended_cpu = 0.0
        self._turn = 0
        self.stopped: tuple[int, ...] = ()

    def refresh(self) -> None:
        """Find processes that came and forget those that went; raises OSError where there is no /proc."""
        listed = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        for pid in [p for p in self._known if p not in listed]:
            del self._known[pid]
        for pid in listed - self._known.keys():
            stat = self._stat(pid)
            if stat is not None:
                self._known[pid] = stat.parent
        for pid in [p for p in self._members if p not in listed]:
            self._ended_cpu += self._members.pop(pid).cpu
        for pid in self._known:
            if pid not in self._members and self._descends(pid):
                stat = self._stat(pid)
                if stat is not None:
                    self._members[pid] = stat

    def _descends(self, pid: int) -> bool:
        if pid == self._root:
            return self._whole
        seen = 0
        while pid and seen < 100:
            if pid in self._apart:
                return False
            if pid in self._members or pid == self._root:
                return True
            pid = self._known.get(pid, 0)
            seen += 1
        return False

    def read(self) -> TreeReading:
        """Return what the tree holds now."""
        for pid in self._chosen():
            self._read_memory(pid)
        held = sum(p.anon for p in self._members.values())
        cpu = self._ended_cpu + sum(p.cpu for p in self._members.values())
        return TreeReading(frozenset(self._members), held, cpu)

    def read_cpu(self) -> None:
        """Bring the processor times up to date, and which processes are stopped."""
        stopped = []
        for pid, process in self._members.items():
            stat = self._stat(pid)
            if stat is not None and stat.started == process.started:
                process.cpu = stat.cpu
                if stat.stopped:
                    stopped.append(pid)
        self.stopped = tuple(sorted(stopped)[:4])

    def _chosen(self) -> list[int]:
        pids = list(self._members)
        if len(pids) <= MOST_READ:
            return pids
        pids.sort(key=lambda p: -self._members[p].anon)
        rest = pids[MOST_READ // 2 :]
        self._turn = (self._turn + MOST_READ // 2) % len(rest)
        return pids[: MOST_READ // 2] + (rest + rest)[self._turn : self._turn + MOST_READ // 2]

    def _read_memory(self, pid: int) -> None:
        try:
            with open(f"{self._proc}/{pid}/statm", "rb", buffering=0) as stream:
                fields = stream.read(256).split()
            self._members[pid].anon = max(0, int(fields[1]) - int(fields[2])) * PAGE
        except (OSError, IndexError, ValueError):
            self._members[pid].anon = 0

    def _stat(self, pid: int) -> _Process | None:
        try:
            with open(f"{self._proc}/{pid}/stat", "rb", buffering=0) as stream:
                fields = stream.read(1024).rpartition(b")")[2].split()
            cpu = (int(fields[11]) + int(fields[12])) / TICKS
            return _Process(int(fields[1]), int(fields[19]), 0, cpu, fields[0] == b"T")
        except (OSError, IndexError, ValueError):
            return None
