"""One step of Slurm's as `srun` tells of it: which task runs where, what it says, and how it ends."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from envdoctor.fleet.carriage import Frames, frame_node
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.transports.reasons import quoted, reason_of, reply_of
from envdoctor.fleet.transports.slurm_nodes import expanded

_LABEL = re.compile(rb"\s*(\d{1,7}): ")
_PLACED = re.compile(r"srun: (?:\S+: )*launching (?:StepId=)?(\S+) on host (\S+), \d+ tasks: ([\d,-]+)")
_ENDED = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): Exited with exit code (\d{1,9})")
_KILLED = re.compile(r"srun: error: (\S+): tasks? ([\d,-]+): (?!Exited with)(.+)")
_LOST = re.compile(
    r"srun: error: (?:Task launch for \S+ failed on node (\S+): (.+)|Node failure on (\S+?)\.?$)"
)
_OF_SLURM = b"slurmstepd"
"""How its own words begin that stand among a task's: that we cancelled it."""
_KEPT_NOISE = 600


@dataclass(slots=True)
class Step:
    """What one srun has said so far. A task speaks for the node that Slurm placed it on, and for no other."""

    waiting: set[str]
    take: Take
    id: str | None = None
    """Slurm's number of the step, once it was made."""
    begun: bool = False
    """A task of it has spoken."""
    aborted: bool = False
    lost: dict[str, str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    _places: dict[int, str] = field(default_factory=dict)
    _frames: dict[int, Frames] = field(default_factory=dict)
    _noise: dict[int, bytes] = field(default_factory=dict)
    _ended: dict[str, tuple[int, int | str]] = field(default_factory=dict)

    @property
    def launched(self) -> bool:
        """True once Slurm tried to start something."""
        return bool(self.id or self._frames or self._noise or self._ended or self.lost or self.aborted)

    def hear(self, stream: str, line: bytes) -> None:
        """Take one line of srun's standard output or error."""
        label = _LABEL.match(line)
        self.begun |= label is not None
        if label is None:
            self._hear_srun(line.decode("utf-8", "replace").strip())
        elif stream == "stdout" and (claimed := frame_node(line)) is not None:
            self._hear_frame(int(label[1]), claimed, line)
        elif not line.startswith(_OF_SLURM, label.end()):
            task = int(label[1])
            self._noise[task] = (self._noise.get(task, b"") + line[label.end() :] + b"\n")[-_KEPT_NOISE:]

    def _hear_frame(self, task: int, claimed: str, line: bytes) -> None:
        node = self._places.get(task, claimed)
        frames = self._frames.setdefault(task, Frames())
        frames.add(line)
        if node not in self.waiting or not (frames.complete or claimed != node):
            return
        if claimed == node:
            self.waiting.discard(node)
            self.take(reply_of(node, self._frames.pop(task), 0, b""))
        else:
            self._give(node, f"it answered in the name of {claimed}, and only its own is believed")

    def _hear_srun(self, line: str) -> None:
        if match := _PLACED.match(line):
            self.id = match[1]
            self._places.update((int(task), match[2]) for task in expanded(f"[{match[3]}]"))
        elif match := _LOST.match(line):
            nodes, reason = match[1] or match[3], match[2] or "the node failed"
            self.lost.update(dict.fromkeys(expanded(nodes), reason))
        elif match := _ENDED.match(line):
            self._note_end(match[1], match[2], int(match[3]))
        elif match := _KILLED.match(line):
            self._note_end(match[1], match[2], match[3])
        elif "Job step aborted" in line:
            self.aborted = True
        elif line.startswith(("srun: error:", "srun: fatal:")):
            self.complaints.append(line.split(":", 2)[2].strip())

    def _note_end(self, nodes: str, tasks: str, how: int | str) -> None:
        for node, task in zip(expanded(nodes), expanded(f"[{tasks}]"), strict=False):
            self._ended[self._places.get(int(task), node)] = (int(task), how)

    def settle(self, told: str | None) -> set[str]:
        """Hand over the nodes whose silence is explained and return the others, which may be asked again.

        `told` is why none shall be: then all are handed over.
        """
        for node in sorted(self.waiting):
            if (reason := self._reason(node, told)) is not None:
                self._give(node, reason)
        return self.waiting

    def _reason(self, node: str, told: str | None) -> str | None:
        if node in self.lost:
            return f"Slurm could not start the probe there: {self.lost[node]}"
        task, how = self._ended.get(node, (None, None))
        if isinstance(how, int) and task is not None:
            return reason_of(self._frames.get(task, Frames()), how, self._noise.get(task, b""))
        if told is not None:
            return (
                self._overheard(node, told) if how is None or self.aborted else f"the probe was ended: {how}"
            )
        if self.aborted or not self.launched:
            return None
        if how is not None:
            return f"the probe was ended: {how}"
        return self._silence(node)

    def _overheard(self, node: str, told: str) -> str:
        said = b" ".join(self._noise.get(task, b"") for task, place in self._places.items() if place == node)
        return f"{told}; it said {quoted(said)}" if said.strip() else told

    def _silence(self, node: str) -> str:
        """Return what a node is told to have said that ended well and gave no facts."""
        tasks = [task for task, place in self._places.items() if place == node] or list(self._noise)
        frames = self._frames.get(tasks[0], Frames()) if len(tasks) == 1 else Frames()
        noise = b" ".join(self._noise.get(task, b"") for task in tasks)
        return reason_of(Frames(noise=(noise + frames.noise)[:400]), 0, b"")

    def _give(self, node: str, reason: str) -> None:
        self.waiting.discard(node)
        self.take(Reply(node, None, reason))
