"""Everything that is read of a run, folded into moments."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from envdoctor.errors import InputError
from envdoctor.facts.quantities import MIB
from envdoctor.watch.cards import Cards, open_cards
from envdoctor.watch.child import Child
from envdoctor.watch.host import Host, HostReading, least_free
from envdoctor.watch.inside import Inside
from envdoctor.watch.loglines import TAKEN_BYTES, LogReader
from envdoctor.watch.moment import STILL, Moment
from envdoctor.watch.tree import Tree


class LogSource:
    """The copies of a child's output: from the relay, and from the files that it writes to."""

    def __init__(self, pipe: int | None, files: Sequence[tuple[int, int]]) -> None:
        self._pipe = pipe
        self._files = [opened for fd, size in files if (opened := _reopened(fd, size)) is not None]
        self.is_read = pipe is not None or bool(self._files)

    def read(self) -> bytes:
        """Return what is new; of much, the end."""
        parts = [self._from_pipe()] if self._pipe is not None else []
        return b"".join([*parts, *map(_grown, self._files)])

    def _from_pipe(self) -> bytes:
        data = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(self._pipe or 0, 1 << 18):
                data = (data + chunk)[-2 * TAKEN_BYTES :]
        return data


def _reopened(fd: int, size: int) -> int | None:
    """Open a file that the child writes to for reading, from where it ended before."""
    try:
        opened = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        os.lseek(opened, size, os.SEEK_SET)
    except OSError:
        return None
    return opened


def _grown(fd: int) -> bytes:
    with contextlib.suppress(OSError):
        size, at = os.fstat(fd).st_size, os.lseek(fd, 0, os.SEEK_CUR)
        if size < at:
            os.lseek(fd, 0, os.SEEK_SET)
        elif size - at > 2 * TAKEN_BYTES:
            os.lseek(fd, -2 * TAKEN_BYTES, os.SEEK_END)
        return os.read(fd, 2 * TAKEN_BYTES)
    return b""


@dataclass(slots=True)
class Sampler:
    """Reads everything about a tree of processes and folds it into moments."""

    tree: Tree
    source: LogSource
    host: Host
    cards: Cards
    log: LogReader = field(default_factory=LogReader)
    places: Sequence[str] = ()
    inside: Inside | None = None
    _pids: frozenset[int] = frozenset()
    _most: int = 0
    _least: HostReading | None = None
    _cpu: float = 0.0
    _cpu_at: float = 0.0
    _said_at: float = 0.0

    @property
    def pids(self) -> frozenset[int]:
        """The processes of the run."""
        return self._pids

    def sample(self, t: float, slow: bool) -> None:
        """Take one reading; a slow one also looks for new processes and at processor times."""
        if data := self.source.read():
            self._said_at = t
            self.log.feed(data)
        with contextlib.suppress(OSError):
            if slow:
                self.tree.refresh()
            reading = self.tree.read()
            self._pids, self._most = reading.pids, max(self._most, reading.anon_bytes)
        host = self.host.read() if slow or self._least is None else self._least
        self._least = host
        self.cards.sample(self._pids)

    def fold(self, t: float) -> Moment:
        """Return the moment that the readings since the last one make."""
        self.tree.read_cpu()
        cpu = self.tree.read().cpu_s
        cores = (cpu - self._cpu) / (t - self._cpu_at) if t > self._cpu_at else None
        self._cpu, self._cpu_at = cpu, t
        most, self._most = self._most, 0
        host, fullest = self._least, least_free(self.places)
        allocator = self.inside.read(self._pids) if self.inside else None
        return Moment(
            t, self.log.step, self.log.of, self.log.loss, self.log.phase, self.log.part,
            most // MIB, _mib(host.room_bytes if host else None), None if cores is None else round(cores, 2),
            len(self._pids), _mib(fullest[0] if fullest else None), _mib(host.shm_bytes if host else None),
            round(t - self._said_at, 1) if self.source.is_read else None,
            allocator.allocated if allocator else None, allocator.reserved if allocator else None,
            nan=bool(self.log.not_finite) or None, stopped=self.tree.stopped or None, cards=self.cards.fold(),
            links=self.cards.take_links(),
            same_loss=_plainly(self.log.same_loss), no_gradient=_plainly(self.log.no_gradient),
        )  # fmt: skip


def _plainly(reports: int) -> int | None:
    return reports if reports >= STILL else None


def _mib(value: int | None) -> int | None:
    return None if value is None else value // MIB


def sampler_of(child: Child, inside: Inside | None = None) -> Sampler:
    """Return what reads a child that we started."""
    relay = child.relay
    tree = Tree(os.getpid(), apart=(relay.pid,))
    source = LogSource(relay.log if child.relayed else None, child.files)
    return Sampler(tree, source, Host(child.pid), open_cards(), places=_places(), inside=inside)


def sampler_of_process(pid: int) -> tuple[tuple[str, ...], Sampler]:
    """Return the command line of a process that runs already and what reads it; raises InputError."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        raise InputError(f"--pid {pid}: no such process, or no /proc here") from None
    sampler = Sampler(Tree(pid, whole=True), LogSource(None, ()), Host(pid), open_cards(), places=_places())
    return tuple(words), sampler


def _places() -> tuple[str, ...]:
    """Return where a run is likely to write."""
    named = (os.environ.get(name) for name in ("TMPDIR", "HF_HOME"))
    return tuple(dict.fromkeys(place for place in (".", "/tmp", *named) if place and os.path.isdir(place)))
