"""Steps of a job, side by side and small: what one node does to its step touches few others.

srun ends a whole step when it cannot start one of its tasks. The nodes that had not answered then are asked
again without the one that is to blame.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from envdoctor.errors import Unavailable
from envdoctor.fleet.carriage import Cargo
from envdoctor.fleet.nodeset import fold, natural_key
from envdoctor.fleet.reply import Take
from envdoctor.fleet.transports.conversation import Call, Exchange
from envdoctor.fleet.transports.slurm_step import Step
from envdoctor.processes import run_child

PART = 16
"""Nodes of a step: Slurm's smallest TreeWidth, so that srun speaks to each itself, none behind another."""
MAX_STEPS = 64
GRACE_S = 2.0
"""How much longer than a node's deadline its step may take, for Slurm to start it."""
_STARTING_A_CORE = 2
_START_S = 3.0
"""How long a silent step counts as one that starts when no node answers: of those a core bears few."""
_ATTEMPTS = 3
_CANCEL_S = 5.0
_LEAST_S = 2.0


@dataclass(eq=False, slots=True)
class _Job:
    """A job in which steps run, and what is done once they have ended."""

    id: str
    done: Callable[[], None]
    parts: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """Nodes of a job that are asked in one step; when asked again, what is left of their time."""

    job: _Job
    nodes: tuple[str, ...]
    attempt: int = 1
    asked: float | None = None
    deadline: float = 0.0


@dataclass(slots=True)
class Steps:
    """Runs the cargo once on nodes of jobs and hands over each reply."""

    exchange: Exchange
    cargo: Cargo
    take: Take
    deadline_s: float
    arguments: Sequence[str]
    left: list[str] = field(default_factory=list)
    """Steps whose srun had to be killed."""
    _queue: deque[_Part] = field(default_factory=deque)
    _running: int = 0
    _starting: int = 0
    _first: float = field(default_factory=time.monotonic)
    _answered: float = field(default_factory=time.monotonic)
    _launched: bool = False
    _split: bool = False
    _complaint: str = ""

    @property
    def refused(self) -> str | None:
        """Why Slurm ran no step at all."""
        return f"srun: {self._complaint}" if self._complaint and not self._launched else None

    def start(self, job: str, nodes: Collection[str], done: Callable[[], None] = lambda: None) -> None:
        """Run the cargo on nodes of a job and call `done` once all of them were answered for."""
        here = _Job(job, done)
        self._enqueue(_Part(here, part) for part in _parts(sorted(nodes, key=natural_key)))
        if not here.parts:
            done()

    def _enqueue(self, parts: Iterable[_Part]) -> None:
        for part in parts:
            part.job.parts += 1
            self._queue.append(part)
        self._fill()

    def _fill(self) -> None:
        while self._queue and self._running < MAX_STEPS and self._starting < _at_once():
            self._launch(self._queue.popleft())

    def _due(self) -> float:
        """Return when a step that starts now must have ended: with the first, unless little would be left."""
        now = time.monotonic()
        return max(self._first + self.deadline_s, now + self.deadline_s / 2) + GRACE_S

    def _launch(self, part: _Part) -> None:
        if part.asked is None:
            part = _Part(part.job, part.nodes, part.attempt, time.monotonic(), self._due())
        step = Step(set(part.nodes), self.take)
        command, variables = self.cargo.in_environment()
        self._running += 1
        self._starting += 1
        start = _Start(self)
        self.exchange.start(
            srun_command(part.job.id, part.nodes, command, self.arguments),
            lambda stream, line: start.hear(step, stream, line),
            lambda call: self._ended(part, step, call, start),
            part.deadline - time.monotonic(),
            stdin=b"",
            env={**os.environ, **variables},
        )

    def started(self) -> None:
        """Make room for another step to start."""
        self._starting -= 1
        self._fill()

    def note_answer(self) -> None:
        """Note that a node answered."""
        self._answered = time.monotonic()

    @property
    def is_stuck(self) -> bool:
        """True when no node has answered for so long that others should not wait for steps that start."""
        return time.monotonic() - self._answered >= _START_S

    def _ended(self, part: _Part, step: Step, call: Call, start: _Start) -> None:
        self._running -= 1
        start.over()
        self._launched |= step.launched
        if step.id and not call.obeyed:
            self.left.append(step.id)
        again = step.settle(self._why_not_again(part, step, call))
        self._enqueue(self._divided(part, again))
        part.job.parts -= 1
        if not part.job.parts:
            part.job.done()

    def _why_not_again(self, part: _Part, step: Step, call: Call) -> str | None:
        """Return why a part that ended early is not asked again, None when it is."""
        complaint = step.complaints[-1] if step.complaints else "srun ended without a word"
        if not step.launched:
            self._complaint = complaint
        if call.timed_out:
            return f"no answer within {self._given(part):g} s"
        late = part.deadline - time.monotonic() < _LEAST_S
        if part.attempt >= _ATTEMPTS or late:
            return f"Slurm ended its step: {complaint}"
        if not step.launched and (len(part.nodes) == 1 or (self._split and not self._launched)):
            return f"Slurm made no step there: {complaint}"
        return None

    def _given(self, part: _Part) -> float:
        """Return how many seconds nodes had, the deadline unless they were asked long after the first."""
        seconds = part.deadline - GRACE_S - (part.asked or 0.0)
        return self.deadline_s if seconds > self.deadline_s * 0.9 else round(seconds)

    def _divided(self, part: _Part, again: Collection[str]) -> Iterator[_Part]:
        """Yield the nodes to ask again: together, one by one at the last attempt or with none to blame."""
        alone = part.attempt + 1 >= _ATTEMPTS or len(again) == len(part.nodes)
        self._split |= bool(again) and alone
        for nodes in _parts(sorted(again, key=natural_key), 1 if alone else PART):
            yield _Part(part.job, nodes, part.attempt + 1, part.asked, part.deadline)


class _Start:
    """The time from a step's launch to its first word, which costs this machine more than all the rest."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._over = False
        self._wait()

    def _wait(self) -> None:
        self._steps.exchange.wake(_START_S, self._look)

    def _look(self) -> None:
        """Wait on while nodes answer; a node that only prints is none."""
        if self._steps.is_stuck:
            self.over()
        elif not self._over:
            self._wait()

    def hear(self, step: Step, stream: str, line: bytes) -> None:
        """Hand a line to the step."""
        left = len(step.waiting)
        step.hear(stream, line)
        if len(step.waiting) < left:
            self._steps.note_answer()
        if step.begun:
            self.over()

    def over(self) -> None:
        """It has started, or takes its time elsewhere."""
        if not self._over:
            self._over = True
            self._steps.started()


def _at_once() -> int:
    """Return how many steps may start at a time."""
    return _STARTING_A_CORE * (os.cpu_count() or 1)


def _parts(nodes: Sequence[str], size: int = PART) -> Iterator[tuple[str, ...]]:
    for first in range(0, len(nodes), size):
        yield tuple(nodes[first : first + size])


def srun_command(job: str, nodes: Sequence[str], command: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return the call of srun: one task a node, lines labelled by task, none of them ending the others.

    `--verbose` makes it tell which task runs where. What tasks read is in their environment: srun passes its
    standard input on once all are connected, and one that cannot be started leaves the others without it.
    """
    return [
        *("srun", "--verbose", f"--jobid={job}", "--job-name=envdoctor", "--overlap", "--mpi=none"),
        *(f"--nodelist={fold(nodes)}", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}"),
        *("--ntasks-per-node=1", "--distribution=block", "--label", "--no-kill", "--kill-on-bad-exit=0"),
        *("--wait=0", "--input=none", "--export=ALL", *arguments, "sh", "-c", f"exec {command}"),
    ]


def cancel(left: Sequence[str]) -> None:
    """End jobs and steps whose launchers could not do it themselves."""
    if left:
        with contextlib.suppress(Unavailable):
            run_child(["scancel", "--quiet", *left], timeout_s=_CANCEL_S)
