"""Where the processes of a run stand: their Python stacks, through py-spy, and which rank differs.

py-spy reads a process from outside without stopping it. Where it is missing or not allowed to (ptrace), what
the kernel tells of the process is taken instead.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from envdoctor.errors import EnvdoctorError
from envdoctor.inputs import parse_json
from envdoctor.processes import run_child
from envdoctor.watch.moment import Alarm, Stack, Stacks
from envdoctor.watch.surroundings import environment_of, rank_of

_PATIENCE_S = 20.0
_MOST = 16
"""Processes whose stacks are read."""
_DEEPEST = 12
_HELPERS = ("resource_tracker", "semaphore_tracker", "forkserver")
_ASIDE = (
    "torch/utils/data/_utils/worker.py", "torch/distributed/elastic/agent/", "torch/distributed/launcher/",
    "torch/_inductor/compile_worker/", "accelerate/commands/launch.py", "deepspeed/launcher/",
)  # fmt: skip
"""Files whose frames tell a loader's worker, a launcher or a compiler from a rank."""
_JOINS = ("join (", "multiprocessing/spawn.py")
"""The frame of a process that waits for the ranks it spawned."""
_COLLECTIVES = ("torch/distributed/", "deepspeed/comm/", "accelerate/utils/operations.py")
_LIBRARIES = ("site-packages/", "dist-packages/", "lib/python")


def read_stacks(pids: Iterable[int]) -> Iterator[Stack]:
    """Yield where the Python processes among `pids` stand, ranks in their order; helpers are passed over."""
    found = [pid for pid in sorted(pids) if _is_python(pid)][: 4 * _MOST]
    spy = _spy()
    stacks = [_read(spy, pid) for pid in _ranks_first(found)[:_MOST]]
    yield from sorted((s for s in stacks if not _is_aside(s)), key=lambda s: (s.rank is None, s.rank or 0))


def _ranks_first(pids: Sequence[int]) -> list[int]:
    return sorted(pids, key=lambda pid: (rank_of(environment_of(pid)) is None, pid))


def _spy() -> str | None:
    """Return py-spy's path: beside our own interpreter, else on the search path."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return beside if os.access(beside, os.X_OK) else shutil.which("py-spy")


def _is_python(pid: int) -> bool:
    try:
        name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = stream.read(1 << 14).decode("utf-8", "replace")
    except OSError:
        return False
    return name.startswith(("python", "pypy")) and not any(helper in words for helper in _HELPERS)


def _read(spy: str | None, pid: int) -> Stack:
    rank = rank_of(environment_of(pid))
    if spy is None:
        return Stack(pid, rank, (), f"{_kernels_word(pid)}; no stack: py-spy is not installed")
    try:
        done = run_child([spy, "dump", "--nonblocking", "--json", "--pid", str(pid)], timeout_s=_PATIENCE_S)
        threads = parse_json(done.stdout) if done.returncode == 0 else None
    except (EnvdoctorError, ValueError) as error:
        return Stack(pid, rank, (), f"{_kernels_word(pid)}; no stack: {error}")
    if not isinstance(threads, list):
        why = (done.stderr.strip().splitlines() or ["no answer"])[0][:120]
        return Stack(pid, rank, (), f"{_kernels_word(pid)}; no stack: py-spy: {why}")
    return Stack(pid, rank, frames_of(threads))


def frames_of(threads: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the main thread's frames of py-spy's answer, the innermost first, as `name (file:line)`."""
    main = next((t for t in threads if t.get("thread_name") == "MainThread"), threads[-1] if threads else {})
    frames = main.get("frames") or []
    return tuple(f"{f['name']} ({_short(str(f['filename']))}:{f['line']})" for f in frames[:_DEEPEST])


def _short(name: str) -> str:
    for mark in ("site-packages/", "dist-packages/"):
        if mark in name:
            return name[name.rindex(mark) :]
    at = name.find("lib/python")
    return name[at:] if at >= 0 else name


def _kernels_word(pid: int) -> str:
    """Return a process' state and the place in the kernel where it waits, as far as that is told."""
    state, place = "state unknown", ""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as stream:
            state = next((line.split(":", 1)[1].strip() for line in stream if line[:6] == "State:"), state)
        with open(f"/proc/{pid}/wchan", encoding="ascii", errors="replace") as stream:
            place = stream.read(100).strip("0 \n")
    except OSError:
        pass
    return f"{state} in {place}" if place else state


def _is_aside(stack: Stack) -> bool:
    marked = any(mark in frame for frame in stack.frames for mark in _ASIDE)
    return marked or any(f.startswith(_JOINS[0]) and _JOINS[1] in f for f in stack.frames)


def in_words(stack: Stack) -> str:
    """Return a process by its rank."""
    return f"rank {stack.rank} (process {stack.pid})" if stack.rank is not None else f"process {stack.pid}"


def where(stack: Stack) -> str:
    """Return where a process stands: its innermost frame, and the innermost of the user's own code."""
    if not stack.frames:
        return stack.why
    own = next((frame for frame in stack.frames if not _is_library(frame)), None)
    inner = stack.frames[0]
    return inner if own in (None, inner) else f"{inner}, from {own}"


def _is_library(frame: str) -> bool:
    return any(mark in frame for mark in _LIBRARIES) or "(<frozen" in frame


def difference(stacks: Stacks, stopped: Sequence[int] = ()) -> Alarm | None:
    """Return which rank stands elsewhere than the others; None where there is nothing to compare."""
    ranks = [stack for stack in stacks.ranks if stack.frames or stack.pid in stopped]
    if not ranks:
        return None
    odd = _odd(ranks, stopped, stacks.behind)
    rest = [stack for stack in ranks if stack not in odd]
    if not odd:
        who = "it stands" if len(ranks) == 1 else f"all {len(ranks)} ranks stand"
        return Alarm(stacks.t, "HANG", f"{who} in {where(ranks[0])}")
    told = "; ".join(f"{in_words(s)} {_stands(s, stopped)}" for s in odd[:3])
    others = f"; {_count(rest)} in {where(rest[0])}" if rest else ""
    return Alarm(stacks.t, "HANG", f"{told}{others}")


def _stands(stack: Stack, stopped: Sequence[int]) -> str:
    if stack.pid in stopped:
        return f"is stopped{f' in {where(stack)}' if stack.frames else ''}"
    return f"stands in {where(stack)}"


def _count(rest: Sequence[Stack]) -> str:
    return in_words(rest[0]) if len(rest) == 1 else f"the {len(rest)} others"


def _odd(ranks: Sequence[Stack], stopped: Sequence[int], late: Sequence[int]) -> list[Stack]:
    """Return the ranks that differ: the stopped, those behind, those outside a collective or the majority."""
    halted = [s for s in ranks if s.pid in stopped] or [s for s in ranks if s.rank in late]
    if halted or len({stack.frames for stack in ranks}) == 1:
        return halted
    outside = [stack for stack in ranks if not _in_collective(stack)]
    if 0 < len(outside) < len(ranks):
        return outside
    frames, count = Counter(stack.frames for stack in ranks).most_common(1)[0]
    return [stack for stack in ranks if stack.frames != frames] if 2 * count > len(ranks) else list(ranks)


def _in_collective(stack: Stack) -> bool:
    return any(mark in frame for frame in stack.frames[:4] for mark in _COLLECTIVES)
