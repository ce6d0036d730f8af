"""What Slurm has: its nodes and partitions, and why it holds a node back, in Slurm's own words.

The `--format` options are used because every release since 2.4 has them and none has changed them; what
`--json` writes differs from release to release, and needs a plugin that not all sites build.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from envdoctor.errors import Unavailable
from envdoctor.fleet.nodeset import expand, fold
from envdoctor.fleet.transports.reasons import last_line
from envdoctor.processes import run_child

_ASK_LIMIT_S = 30.0
_ADDS_S = 5.0
_MAX_BYTES = 64 << 20
SINFO = ("sinfo", "--noheader", "--Node", "--format=%N|%T|%P|%a|%E")
_MARKS = "*~#!%$@^-+"
_OFF = frozenset("*~#!%@^")
"""Marks of nodes that do not respond, are powered off or on their way there or back, or reboot."""
_ASKED = frozenset(("idle", "mixed", "planned", "completing", "reserved", "maint", "allocated"))
_IDLE = frozenset(("idle", "planned"))
HOPEFUL = _ASKED - {"allocated"}
"""States in which Slurm may give a node at once."""


@dataclass(slots=True)
class Listed:
    """A node as `sinfo` lists it; `partitions` are those that are up, the default one first."""

    state: str
    marks: str
    reason: str
    partitions: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    @property
    def may_be_asked(self) -> bool:
        """True unless its state says that Slurm can give it to nobody."""
        return self.state in _ASKED and not _OFF & set(self.marks) and bool(self.partitions)

    def told(self, jobs: Sequence[str] = (), reservation: str | None = None) -> str:
        """Return why it is held back."""
        if self.state in _ASKED and not self.partitions:
            return f"its partition is not up: {', '.join(self.closed)}"
        state = "reserved" if reservation and self.state == "idle" else self.state
        words = [f"Slurm says it is {state}"]
        if "*" in self.marks:
            words.append("and does not respond")
        why = [f"reservation {reservation}"] if reservation else []
        why += [f"job {', '.join(jobs[:3])}"] if jobs else []
        why += [self.reason] if self.reason not in ("", "none") else []
        return " ".join(words) + (f" ({'; '.join(why)})" if why else "")


@dataclass(frozen=True, slots=True)
class SlurmNodes:
    """The nodes that may be asked, each with its partitions; why others may not; the job that one is in."""

    asked: Mapping[str, Sequence[str]]
    held: Mapping[str, str]
    job: str | None = None
    everyone: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """All nodes of each partition."""

    def only(self, names: Collection[str]) -> SlurmNodes:
        """Return these nodes alone."""
        return SlurmNodes({n: self.asked.get(n, ()) for n in names}, {}, self.job, self.everyone)


def find_nodes(environ: Mapping[str, str], partition: str | None) -> SlurmNodes:
    """Return the nodes of the job we are in, else of the cluster; raises Unavailable."""
    where = [f"--partition={partition}"] if partition else []
    if job := environ.get("SLURM_JOB_ID"):
        return _nodes_of_job(job, environ.get("SLURM_JOB_NODELIST"), where)
    listed = parse_sinfo(asked([*SINFO, *where]))
    candidates = {name: tuple(node.partitions) for name, node in listed.items() if node.may_be_asked}
    held = {name: node for name, node in listed.items() if name not in candidates}
    return SlurmNodes(candidates, tell_why(held), None, _everyone(listed))


def _nodes_of_job(job: str, told: str | None, where: Sequence[str]) -> SlurmNodes:
    nodes = told or asked(["squeue", "--noheader", f"--jobs={job}", "--format=%N"]).strip()
    if not nodes:
        raise Unavailable(f"squeue: job {job} has no nodes")
    listed = parse_sinfo(asked([*SINFO, f"--nodes={nodes}", *where]))
    names = [name for name in expanded(nodes) if not where or name in listed]
    held = {n: listed[n] for n in names if n in listed and _cannot_run_a_step(listed[n])}
    return SlurmNodes(
        {name: () for name in names if name not in held},
        {n: node.told() for n, node in held.items()},
        job,
        _everyone(listed),
    )


def _cannot_run_a_step(node: Listed) -> bool:
    """True for a node that a job lost; one that is to be drained still serves the job that has it."""
    return node.state == "down" or "*" in node.marks


def _everyone(listed: Mapping[str, Listed]) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = {}
    for name, node in listed.items():
        for partition in node.partitions:
            names.setdefault(partition, set()).add(name)
    return {partition: frozenset(found) for partition, found in names.items()}


def asked(command: Sequence[str], limit_s: float = _ASK_LIMIT_S) -> str:
    """Return what one of Slurm's programs answers; raises Unavailable with its complaint."""
    done = run_child(command, timeout_s=limit_s, max_bytes=_MAX_BYTES)
    if done.returncode != 0 or done.timed_out:
        reason = last_line(done.stderr.encode()) or f"no answer within {limit_s:g} s"
        raise Unavailable(f"{command[0]}: {reason}")
    return done.stdout


def parse_sinfo(text: str) -> dict[str, Listed]:
    """Read lines of `%N|%T|%P|%a|%E`: node, state, partition (`*`: the default), is it up, the reason."""
    found: dict[str, Listed] = {}
    for line in text.splitlines():
        name, state, partition, up, reason = (*line.strip().split("|", 4), "", "", "", "")[:5]
        if not name:
            continue
        plain = state.rstrip(_MARKS)
        node = found.setdefault(name, Listed(plain, state[len(plain) :], reason.strip()))
        if up not in ("up", ""):
            node.closed.append(f"{partition.rstrip('*')} is {up}")
        elif partition.endswith("*"):
            node.partitions.insert(0, partition.rstrip("*"))
        elif partition:
            node.partitions.append(partition)
    return found


def tell_why(nodes: Mapping[str, Listed]) -> dict[str, str]:
    """Return why Slurm holds each node back, with the jobs and the reservations that have them."""
    busy = any(node.state in ("allocated", "mixed", "completing") for node in nodes.values())
    idle = any(node.state in ("idle", "reserved", "maint") for node in nodes.values())
    jobs = _parse_jobs(_asked_in_vain(["squeue", "--noheader", "--format=%i|%N"])) if busy else {}
    reserved = reservations() if idle else {}
    return {name: node.told(jobs.get(name, ()), reserved.get(name)) for name, node in nodes.items()}


def reservations() -> dict[str, str]:
    """Return the active reservation of each node that is in one."""
    found: dict[str, str] = {}
    for line in _asked_in_vain(["scontrol", "show", "reservation", "--oneliner"]).splitlines():
        fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
        if fields.get("State") == "ACTIVE":
            for name in expanded(fields.get("Nodes", "")):
                found.setdefault(name, fields.get("ReservationName", ""))
    return found


def _parse_jobs(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        job, _, nodes = line.strip().partition("|")
        for name in expanded(nodes):
            found.setdefault(name, []).append(job)
    return found


def look_again(names: Collection[str]) -> tuple[set[str], dict[str, str]]:
    """Return which nodes could be given by now as far as their states tell, and why the others are not.

    A node that is idle and in no reservation has no reason.
    """
    listed = parse_sinfo(_asked_in_vain([*SINFO, f"--nodes={fold(names)}"]))
    found = {name: node for name, node in listed.items() if name in names}
    reserved = reservations() if any(node.state in _IDLE for node in found.values()) else {}
    free = {n for n, node in found.items() if node.state in _IDLE and node.may_be_asked and n not in reserved}
    soon = {n for n, node in found.items() if node.state in HOPEFUL and node.may_be_asked} - set(reserved)
    return soon, tell_why({name: node for name, node in found.items() if name not in free})


def _asked_in_vain(command: Sequence[str]) -> str:
    """Return what a program answers that only adds to a reason, nothing when it cannot be asked."""
    try:
        return asked(command, _ADDS_S)
    except Unavailable:
        return ""


def expanded(text: str) -> Iterable[str]:
    """Return the names in a node set of Slurm's, none when it is none."""
    try:
        return expand(text)
    except ValueError:
        return ()


def cover(nodes: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the fewest partitions found that hold all nodes, each with the nodes to be had through it."""
    left = dict(nodes)
    chosen: dict[str, tuple[str, ...]] = {}
    while left:
        sizes: dict[str, int] = {}
        for partitions in left.values():
            for partition in partitions or ("",):
                sizes[partition] = sizes.get(partition, 0) + 1
        best = max(sizes, key=lambda partition: sizes[partition])
        chosen[best] = tuple(name for name, partitions in left.items() if best in (partitions or ("",)))
        left = {name: partitions for name, partitions in left.items() if name not in chosen[best]}
    return chosen
