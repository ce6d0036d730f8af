"""All probes, run side by side, each guarded and under its own time limit, and merged into one answer."""

from __future__ import annotations

import threading
import time

from . import (
    conditions,
    disk,
    driver,
    environment,
    fabric,
    gpus,
    host,
    kernel_gpus,
    libraries,
    mounts,
    places,
    toolkits,
    variables,
    xids,
)
from .interpreter import check_interpreter
from .machine import Json, Machine, unknown
from .typed import Any, Callable, List, NamedTuple, Optional, Tuple
from .urls import hide_credentials

SCHEMA = "envdoctor.facts/1"


class Probe(NamedTuple):
    """One source of facts: how it is read, how long it may take, and which facts it owes."""

    name: str
    read: Callable[[Machine], Json]
    limit_s: float
    facts: Tuple[str, ...]


PROBES: Tuple[Probe, ...] = (
    Probe("driver", driver.read, 3.0, driver.FACTS),
    Probe("gpus", gpus.read, 30.0, gpus.FACTS),
    Probe("kernel_gpus", kernel_gpus.read, 2.0, kernel_gpus.FACTS),
    Probe("xids", xids.read, 2.0, xids.FACTS),
    Probe("host", host.read, 3.0, host.FACTS),
    Probe("conditions", conditions.read, 3.0, conditions.FACTS),
    Probe("fabric", fabric.read, 3.0, fabric.FACTS),
    Probe("disk", disk.read, 3.0, disk.FACTS),
    Probe("mounts", mounts.read, 3.0, mounts.FACTS),
    Probe("toolkits", toolkits.read, 6.0, toolkits.FACTS),
    Probe("libraries", libraries.read, 15.0, libraries.FACTS),
    Probe("environment", environment.read, 15.0, environment.FACTS),
    Probe("variables", variables.read, 1.0, variables.FACTS),
    Probe("places", places.read, 3.0, places.FACTS),
)
PATIENCE_S = 0.25
BACKUPS = frozenset(("kernel_gpus",))
COMPARED = frozenset(("conditions",))
"""Probes of what says something only beside other machines."""


def read_machine(
    python: Optional[str] = None, machine: Optional[Machine] = None, probes: Tuple[Probe, ...] = PROBES
) -> Json:
    """Return this machine's facts in the terms of `envdoctor.facts/1`.

    `python` is the interpreter or environment to examine, by default the active environment, else our own;
    raises NoInterpreter when it does not exist. Nothing else is raised: what cannot be read is unknown, with
    the reason.
    """
    return start_reading(python, machine, probes)()


def start_reading(
    python: Optional[str] = None, machine: Optional[Machine] = None, probes: Tuple[Probe, ...] = PROBES
) -> Callable[[], Json]:
    """Start what `read_machine` does, and return what waits for its facts."""
    machine = machine or Machine(python)
    if machine.python:
        check_interpreter(machine, machine.python)
    running = [_Running(probe) for probe in probes]
    readers = _Readers(machine, running)
    return lambda: _collect(running, readers)


def _collect(running: List[_Running], readers: _Readers) -> Json:
    answer: Json = {"schema": SCHEMA, "origin": "probe"}
    for one in running:
        part = readers.answer_of(one)
        _merge(answer, part if one.probe.name not in BACKUPS else _reliable(answer, part))
    shown: Json = _without_credentials(answer)
    return shown


def _without_credentials(value: Any) -> Any:
    """Return an answer in which no URL carries a user or a password, whichever file or command told it."""
    if isinstance(value, str):
        return hide_credentials(value)
    if isinstance(value, dict):
        return {
            key if "@" not in key else hide_credentials(key): (
                inner if type(inner) is str and "@" not in inner else _without_credentials(inner)
            )
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [i if type(i) is str and "@" not in i else _without_credentials(i) for i in value]
    return value


def _reliable(answer: Json, part: Json) -> Json:
    """Return a backup's facts; that it sees nothing settles nothing where the first source was not read."""
    unread = answer.get("unread", {})
    return {key: value for key, value in part.items() if key not in unread or value.get("value")}


class _Running:
    """A probe that is to be read, and what it told."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.result: Optional[Json] = None
        self.started: Optional[float] = None
        self.reading = threading.Lock()
        self.reading.acquire()

    def run(self, machine: Machine) -> None:
        """Read it; whatever breaks in it is its answer."""
        self.started = time.monotonic()
        try:
            self.result = self.probe.read(machine)
        except Exception as error:
            self.result = failed(self.probe, "it broke: %s: %s" % (type(error).__name__, error))
        self.reading.release()

    @property
    def is_late(self) -> bool:
        """True once it has had its time."""
        return self.started is not None and time.monotonic() - self.started >= self.probe.limit_s


class _Readers:
    """A thread for the longest probe, one for all others, and another one whenever that is held up.

    A thread a probe would be dearer: most end in a millisecond, and threads wait for one another.
    """

    def __init__(self, machine: Machine, running: List[_Running]) -> None:
        self._machine = machine
        self._waiting = sorted(running, key=lambda one: one.probe.limit_s)
        self._add(1)
        self._add(len(running))

    def _add(self, most: int) -> None:
        threading.Thread(target=self._read, args=(most,), name="probes", daemon=True).start()

    def _read(self, most: int) -> None:
        for _ in range(most):
            try:
                one = self._waiting.pop()
            except IndexError:
                return
            one.run(self._machine)

    def answer_of(self, one: _Running) -> Json:
        """Return its facts, or that they are unknown; one that hangs is left."""
        while not one.reading.acquire(timeout=PATIENCE_S):
            if one.is_late:
                return failed(one.probe, "no answer within %g s" % one.probe.limit_s)
            if self._waiting:
                self._add(len(self._waiting))
        assert one.result is not None
        return one.result


def failed(probe: Probe, reason: str) -> Json:
    """Return a probe's facts, all unknown for that reason, and the part as unread."""
    answer: Json = {"unread": {probe.name: reason}}
    reason = "the %s probe gave nothing: %s" % (probe.name, reason)
    for path in probe.facts:
        section, _, name = path.partition(".")
        if name:
            answer.setdefault(section, {})[name] = unknown(reason)
        else:
            answer[section] = unknown(reason)
    return answer


def _merge(answer: Json, part: Json) -> None:
    """Add a probe's facts: what an earlier probe observed stands, what it did not know is completed."""
    for key, value in part.items():
        known = answer.get(key)
        if known is None or (_is_unknown(known) and not _is_unknown(value)):
            answer[key] = value
        elif isinstance(known, list):
            answer[key] = known + value
        elif isinstance(known, dict) and isinstance(value, dict) and "value" not in known:
            _merge(known, value)


def _is_unknown(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"unknown"}
