"""Slurm: one task a node through `srun`, in the allocation one is in, else over the nodes that are free."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from envdoctor.errors import Unavailable
from envdoctor.fleet.carriage import Cargo, Frames, frame_node
from envdoctor.fleet.nodeset import expand
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.transports.conversation import Conversation
from envdoctor.fleet.transports.reasons import last_line, reason_of, reply_of
from envdoctor.processes import run_child

_ASK_LIMIT_S = 30.0
_ATTEMPTS = 3
_FREE = frozenset(("idle", "mixed"))
_STATE_MARKS = "*~#!%$@^-+"
_LABEL = re.compile(rb"\s*(\d+): ")
_ENDED = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): Exited with exit code (\d+)")
_KILLED = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): (?!Exited with)(.+)")
_LOST = re.compile(
    r"srun: error: (?:Task launch for \S+ failed on node (\S+): (.+)|Node failure on (\S+?)\.?$)"
)


@dataclass(frozen=True, slots=True)
class SlurmNodes:
    """The nodes that can be asked now, and why the others cannot."""

    free: tuple[str, ...]
    unreachable: Mapping[str, str]


def find_nodes(environ: Mapping[str, str], partition: str | None) -> SlurmNodes:
    """Return the nodes of the allocation we are in, else of the cluster; raises Unavailable."""
    if nodes := environ.get("SLURM_JOB_NODELIST"):
        return SlurmNodes(tuple(_asked(["scontrol", "show", "hostnames", nodes]).split()), {})
    command = ["sinfo", "--noheader", "--Node", "--format=%N|%T|%E"]
    return parse_sinfo(_asked([*command, f"--partition={partition}"] if partition else command))


def _asked(command: Sequence[str]) -> str:
    done = run_child(command, timeout_s=_ASK_LIMIT_S)
    if done.returncode != 0 or done.timed_out:
        reason = last_line(done.stderr.encode()) or f"no answer within {_ASK_LIMIT_S:g} s"
        raise Unavailable(f"{command[0]}: {reason}")
    return done.stdout


def parse_sinfo(text: str) -> SlurmNodes:
    """Read lines of `%N|%T|%E`: a node, its state, and the reason an administrator gave."""
    free: dict[str, None] = {}
    unreachable: dict[str, str] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        state, _, reason = rest.partition("|")
        if not name:
            continue
        if state.rstrip(_STATE_MARKS) in _FREE and not state.endswith("*"):
            free[name] = None
        else:
            given = f" ({reason})" if reason.strip() not in ("", "none") else ""
            unreachable[name] = f"Slurm says it is {state.rstrip(_STATE_MARKS)}{_silent(state)}{given}"
    return SlurmNodes(tuple(free), {n: r for n, r in unreachable.items() if n not in free})


def _silent(state: str) -> str:
    return " and does not respond" if state.endswith("*") else ""


def run_in_slurm(
    nodes: SlurmNodes, cargo: Cargo, take: Take, *, deadline_s: float, arguments: Sequence[str] = ()
) -> None:
    """Run the cargo once on every node and hand over each reply; raises Unavailable when Slurm runs nothing.

    A launch that fails or a connection that breaks makes srun end the whole step; then the others are asked
    again.
    """
    for name, reason in nodes.unreachable.items():
        take(Reply(name, None, reason))
    waiting = list(nodes.free)
    for attempt in range(_ATTEMPTS):
        if waiting:
            step = Step(set(waiting), take)
            _run_step(waiting, cargo, step, deadline_s, arguments, again=attempt > 0)
            step.settle(last=attempt == _ATTEMPTS - 1, deadline_s=deadline_s)
            waiting = sorted(step.waiting)


def _run_step(
    nodes: Sequence[str],
    cargo: Cargo,
    step: Step,
    deadline_s: float,
    arguments: Sequence[str],
    *,
    again: bool,
) -> None:
    with tempfile.NamedTemporaryFile("w", prefix="envdoctor-nodes-") as listed:
        listed.write("\n".join(nodes) + "\n")
        listed.flush()
        command = srun_command(listed.name, len(nodes), cargo.command, deadline_s)
        command[1:1] = [*_placement(deadline_s, again, os.environ), *arguments]
        with Conversation(command, cargo.stdin) as srun:
            step.timed_out = not srun.listen(step.hear, quiet_s=deadline_s + 5)


def srun_command(node_file: str, count: int, command: str, deadline_s: float) -> list[str]:
    """Return the call of srun: one task a node, lines labelled by task, none of them ending the others."""
    minutes = max(2, round(deadline_s / 60) + 2 + count // 500)
    return [
        "srun",
        *("--job-name=envdoctor", f"--nodelist={node_file}", f"--nodes={count}", f"--ntasks={count}"),
        *("--ntasks-per-node=1", "--label", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"),
        *(f"--time={minutes}", "sh", "-c", command),
    ]


def _placement(deadline_s: float, again: bool, environ: Mapping[str, str]) -> list[str]:
    """Return what keeps srun from queueing: share the allocation we are in, or give up when none is free.

    Asked again, Slurm may need a moment to clear the nodes of the step before.
    """
    if environ.get("SLURM_JOB_ID"):
        return ["--overlap"]
    return [] if again else [f"--immediate={max(5, round(deadline_s))}"]


@dataclass(slots=True)
class Step:
    """What one srun has said so far."""

    waiting: set[str]
    take: Take
    timed_out: bool = False
    aborted: bool = False
    lost: dict[str, str] = field(default_factory=dict)
    _frames: dict[str, Frames] = field(default_factory=dict)
    _noise: dict[int, bytes] = field(default_factory=dict)
    _ended: dict[str, tuple[int, int | str]] = field(default_factory=dict)
    _complaints: list[str] = field(default_factory=list)

    def hear(self, stream: str, line: bytes) -> None:
        """Take one line of srun's standard output or error."""
        label = _LABEL.match(line)
        if stream == "stdout" and (node := frame_node(line)) is not None:
            frames = self._frames.setdefault(node, Frames())
            frames.add(line)
            if frames.complete and node in self.waiting:
                self.waiting.discard(node)
                self.take(reply_of(node, self._frames.pop(node), 0, b""))
        elif label is not None:
            task = int(label[1])
            self._noise[task] = (self._noise.get(task, b"") + line[label.end() :] + b"\n")[-600:]
        else:
            self._hear_srun(line.decode("utf-8", "replace").strip())

    def _hear_srun(self, line: str) -> None:
        if match := _LOST.match(line):
            nodes, reason = match[1] or match[3], match[2] or "the node failed"
            self.lost.update(dict.fromkeys(_expanded(nodes), reason))
        elif match := _ENDED.match(line):
            self._note_end(match[1], match[2], int(match[3]))
        elif match := _KILLED.match(line):
            self._note_end(match[1], match[2], match[3])
        elif "Job step aborted" in line:
            self.aborted = True
        elif line.startswith("srun: error:"):
            self._complaints.append(line.removeprefix("srun: error:").strip())

    def _note_end(self, nodes: str, tasks: str, how: int | str) -> None:
        for node, task in zip(_expanded(nodes), _expanded(f"[{tasks}]"), strict=False):
            self._ended[node] = (int(task), how)

    def settle(self, *, last: bool, deadline_s: float) -> None:
        """Hand over the nodes that gave no facts; what another's failed launch ended waits to be asked again.

        Raises Unavailable when srun ran nothing at all and said why.
        """
        nothing = not (self._frames or self._ended or self._noise or self.lost or self.aborted)
        if self.waiting and nothing and self._complaints and not self.timed_out:
            raise Unavailable(f"srun: {self._complaints[-1]}")
        last = last or not (self.lost or self.aborted)
        for node in sorted(self.waiting):
            if (reason := self._reason(node, deadline_s, last=last)) is not None:
                self._give(node, reason)

    def _reason(self, node: str, deadline_s: float, *, last: bool) -> str | None:
        """Return why a node gave no facts, None when it may yet."""
        if node in self.lost:
            return f"Slurm could not start the probe there: {self.lost[node]}"
        task, how = self._ended.get(node, (None, None))
        if isinstance(how, int) and task is not None:
            return reason_of(Frames(), how, self._noise.get(task, b""))
        if not last:
            return None
        if how is not None:
            return f"the probe was ended: {how}"
        if self.timed_out:
            return f"no answer within {deadline_s:g} s"
        return reason_of(Frames(noise=b" ".join(self._noise.values())[:400]), 0, b"")

    def _give(self, node: str, reason: str) -> None:
        self.waiting.discard(node)
        self.take(Reply(node, None, reason))


def _expanded(text: str) -> Iterable[str]:
    try:
        return expand(text)
    except ValueError:
        return ()
