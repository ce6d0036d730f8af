"""Slurm: what is there is asked for and no more, in the job that one is in or in jobs that end with us.

Slurm gives a job all the nodes it names or none. So we name none: `salloc --nodes=1-N` gives those that are
free now. It runs `cat`, whose input we hold: however we end, the job ends too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from envdoctor.errors import Unavailable
from envdoctor.fleet.carriage import Cargo
from envdoctor.fleet.nodeset import fold, natural_key
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.transports.conversation import Call, Exchange
from envdoctor.fleet.transports.slurm_nodes import SlurmNodes, cover, expanded, look_again
from envdoctor.fleet.transports.slurm_steps import GRACE_S, Steps, cancel

_REQUESTS = 3
_IMMEDIATE_S = 5
_WINDOW_S = 5.0
"""How long after the start nodes that were not given may be asked for once more."""
_GRANTED = re.compile(rb"envdoctor-job:(\d+):(\S+)")
_WAITER = 'echo "envdoctor-job:$SLURM_JOB_ID:$SLURM_JOB_NODELIST"; exec cat'


def run_in_slurm(
    nodes: SlurmNodes, cargo: Cargo, take: Take, *, deadline_s: float, arguments: Sequence[str] = ()
) -> None:
    """Run the cargo once on every node and hand over each reply; raises Unavailable when Slurm runs nothing.

    `arguments` are handed to `salloc`, or to `srun` in the job that one is in.
    """
    for name, reason in nodes.held.items():
        take(Reply(name, None, reason))
    exchange = Exchange()
    steps = Steps(exchange, cargo, take, deadline_s, arguments if nodes.job else ())
    jobs = Jobs(exchange, nodes, steps, take, deadline_s, arguments)
    try:
        with exchange:
            if nodes.job:
                steps.start(nodes.job, nodes.asked)
            else:
                jobs.request(nodes.asked)
            exchange.listen()
    finally:
        cancel([*steps.left, *jobs.left])
    if refused := steps.refused or jobs.refused:
        raise Unavailable(refused)


@dataclass(eq=False, slots=True)
class _Request:
    """A call of salloc for some of a partition's nodes."""

    partition: str
    names: frozenset[str]
    call: Call | None = None
    job: str | None = None
    complaint: str = ""


@dataclass(slots=True)
class Jobs:
    """Jobs of our own, each with what a partition could give at once."""

    exchange: Exchange
    nodes: SlurmNodes
    steps: Steps
    take: Take
    deadline_s: float
    arguments: Sequence[str]
    left: list[str] = field(default_factory=list)
    """Jobs whose salloc had to be killed."""
    _unexplained: str = ""
    _granted: bool = False
    _tried: dict[str, list[str]] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    @property
    def refused(self) -> str | None:
        """Why Slurm gave nothing at all, where no state of a node explains it."""
        return f"salloc: {self._unexplained}" if self._unexplained and not self._granted else None

    def request(self, nodes: Mapping[str, Sequence[str]]) -> None:
        """Ask for what is free of the nodes, each to be had through one of its partitions."""
        for partition, names in cover(nodes).items():
            self._allocate(_Request(partition, frozenset(names)))

    def _allocate(self, request: _Request) -> None:
        for name in request.names:
            self._tried.setdefault(name, []).append(request.partition)
        minutes = 2 + round((self.deadline_s + GRACE_S) * 2 / 60)
        others = self.nodes.everyone.get(request.partition, frozenset()) - request.names
        request.call = self.exchange.start(
            salloc_command(request.partition, len(request.names), others, minutes, self.arguments),
            lambda _, line: self._hear(request, line),
            lambda call: self._ended(request, call),
            minutes * 60.0,
        )

    def _hear(self, request: _Request, line: bytes) -> None:
        if match := _GRANTED.match(line):
            request.job, self._granted = match[1].decode(), True
            given = request.names.intersection(expanded(match[2].decode()))
            self.steps.start(request.job, given, lambda: self._relinquish(request))
            self._reconsider(request.names - given, "")
        elif line.startswith((b"salloc: error:", b"salloc: fatal:")):
            request.complaint = line.decode("utf-8", "replace").split(":", 2)[2].strip()

    def _relinquish(self, request: _Request) -> None:
        if request.call is not None:
            self.exchange.hang_up(request.call)

    def _ended(self, request: _Request, call: Call) -> None:
        if request.job is None:
            self._reconsider(request.names, request.complaint or "salloc ended without a word")
        elif not call.obeyed:
            self.left.append(request.job)

    def _reconsider(self, names: Collection[str], complaint: str) -> None:
        """Ask again for nodes that should be free by now, and hand over the others with their states."""
        if not names:
            return
        hopeful, reasons = look_again(names)
        again: dict[str, Sequence[str]] = {}
        for name in sorted(names, key=natural_key):
            tried = self._tried.get(name, [])
            untried = [p for p in self.nodes.asked[name] if p not in tried]
            if name in hopeful and (untried or self._may_wait(tried)):
                again[name] = untried or self.nodes.asked[name]
            else:
                self.take(Reply(name, None, self._told(name, reasons.get(name), complaint)))
        self.request(again)

    def _may_wait(self, tried: Sequence[str]) -> bool:
        return len(tried) < _REQUESTS and time.monotonic() - self._started < _WINDOW_S

    def _told(self, name: str, reason: str | None, complaint: str) -> str:
        if reason is not None:
            return reason
        self._unexplained = complaint or self._unexplained
        return f"Slurm did not give it{f': {complaint}' if complaint else ', though it says it is idle'}"


def salloc_command(
    partition: str, count: int, others: Collection[str], minutes: int, arguments: Sequence[str]
) -> list[str]:
    """Return the call of salloc: at most so many nodes of a partition, those free now, none of `others`."""
    return [
        *("salloc", "--job-name=envdoctor", f"--nodes=1-{count}", "--no-kill"),
        *(f"--immediate={_IMMEDIATE_S}", f"--time={minutes}"),
        *([f"--partition={partition}"] if partition else []),
        *([f"--exclude={fold(others)}"] if others else []),
        *arguments,
        *("sh", "-c", _WAITER),
    ]
