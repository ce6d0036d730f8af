"""What NCCL and torch tell of the collectives of a run that hangs: RAS, and torch's flight recorder where on.

RAS (NCCL 2.24 and later) answers a line of text on the loopback. The flight recorder writes a rank's last
collectives when a byte comes to the pipe that TORCH_NCCL_DEBUG_INFO_PIPE_FILE names.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from envdoctor.inputs import read_input
from envdoctor.values import dataclass
from envdoctor.watch.surroundings import environment_of, rank_of

RAS_PORT = 28028
_RAS_S = 5.0
_RAS_BYTES = 1 << 16
_RAS_QUESTION = b"verbose status\n"
_RAS_SECTIONS = ("Errors", "Warnings")
"""Heads of the parts of its answer that tell of trouble; they stand last."""
_PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
_FILES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_USUAL_FILE = "torch/comm_lib_trace_rank_"
"""Below the cache folder: where torch writes when no variable says otherwise."""
_DUMP_S = 4.0
_DUMP_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Last:
    """The last collective that a rank's flight recorder holds."""

    rank: int
    number: int
    name: str
    state: str


def read_collectives(pids: Iterable[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return what is told of the ranks among `pids`, a sentence each, and the ranks that are behind."""
    environments = {rank_of(told): told for pid in pids if (told := environment_of(pid))}
    lasts = list(_recorded([told for rank, told in environments.items() if rank is not None]))
    address = next((e["NCCL_RAS_ADDR"] for e in environments.values() if e.get("NCCL_RAS_ADDR")), "")
    farthest = max((last.number for last in lasts), default=0)
    late = tuple(last.rank for last in lasts if last.number < farthest)
    return (*progress(lasts), *_asked(address)), late


def progress(lasts: Sequence[Last]) -> tuple[str, ...]:
    """Return in words how far the ranks have come in their collectives."""
    if len(lasts) < 2:
        return ()
    farthest = max(last.number for last in lasts)
    late = [last for last in lasts if last.number < farthest]
    ahead = next(last for last in lasts if last.number == farthest)
    if not late:
        names = {last.name for last in lasts}
        same = f"every rank is in collective {farthest} ({ahead.name}, {ahead.state})"
        told = ", ".join(f"rank {last.rank} in {last.name}" for last in lasts[:8])
        return (same if len(names) == 1 else f"the ranks call different collectives: {told}",)
    told = ", ".join(
        f"rank {last.rank} ended with collective {last.number} ({last.name})" for last in late[:8]
    )
    return (f"flight recorder: {told}; the others wait in {farthest} ({ahead.name}, {ahead.state})",)


def _recorded(environments: Sequence[Mapping[str, str]]) -> Iterator[Last]:
    asked_at = time.time()
    asked = [files for environment in environments if (files := _ask(environment))]
    deadline = time.monotonic() + _DUMP_S
    for rank, path in asked:
        while time.monotonic() < deadline and not _is_written(path, asked_at):
            time.sleep(0.1)
        with contextlib.suppress(Exception):  # what a rank wrote is not ours: any of it may be malformed
            if _is_written(path, asked_at):
                yield last_of(rank, read_input(path, _DUMP_BYTES))


def _ask(environment: Mapping[str, str]) -> tuple[int, str] | None:
    """Ask a rank's flight recorder to write; return the rank and the file."""
    pipe = environment.get(_PIPE, "")
    cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '')}/.cache"
    file = next((environment[n] for n in _FILES if environment.get(n)), f"{cache}/{_USUAL_FILE}")
    rank = rank_of(environment)
    if not pipe or rank is None:
        return None
    try:
        fd = os.open(f"{pipe}{rank}.pipe", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                return None
            os.write(fd, b"1\n")
        finally:
            os.close(fd)
    except OSError:
        return None
    return rank, f"{file}{rank}"


def _is_written(path: str, since: float) -> bool:
    try:
        return os.stat(path).st_mtime >= since - 1 and os.stat(path).st_size > 0
    except OSError:
        return False


class _Plain(pickle.Unpickler):
    """Reads dumps of plain values; a dump that names a class or a function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse."""
        raise pickle.UnpicklingError(f"{module}.{name} in a dump of plain values")


def last_of(rank: int, dump: bytes) -> Last:
    """Return the last collective of a dump; raises an error of pickle, or KeyError, for what is none."""
    entries = _Plain(io.BytesIO(dump)).load()["entries"]
    collectives = [entry for entry in entries if not entry.get("is_p2p")]
    last = max(collectives, key=lambda entry: int(entry["collective_seq_id"]))
    name = str(last["profiling_name"]).removeprefix("nccl:")
    return Last(rank, int(last["collective_seq_id"]), name[:60], str(last["state"])[:20])


def _asked(address: str) -> tuple[str, ...]:
    """Return the lines of RAS' answer that tell of trouble."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host or "127.0.0.1", int(port or RAS_PORT)), 1.0) as line:
            line.settimeout(_RAS_S)
            line.sendall(_RAS_QUESTION)
            return told_by_ras(_received(line))
    except (OSError, ValueError):
        return ()


def _received(line: socket.socket) -> str:
    data = b""
    deadline = time.monotonic() + _RAS_S
    with contextlib.suppress(OSError):
        while len(data) < _RAS_BYTES and time.monotonic() < deadline and (part := line.recv(4096)):
            data += part
    return data.decode("utf-8", "replace")


def told_by_ras(answer: str) -> tuple[str, ...]:
    """Return the lines of an answer's last parts, which tell of trouble."""
    lines = [line.strip() for line in answer.splitlines()]
    at = next((n for n, line in enumerate(lines) if line in _RAS_SECTIONS), len(lines))
    found = [line for line in lines[at:] if " " in line]
    return tuple(f"NCCL RAS: {line[:200]}" for line in found[:12])
