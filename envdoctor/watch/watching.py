"""The watch itself: reads five times a second beside the child, folds, records and judges."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from envdoctor import __version__
from envdoctor.facts.quantities import MIB
from envdoctor.watch.alarms import Judge
from envdoctor.watch.child import Ending
from envdoctor.watch.collectives import read_collectives
from envdoctor.watch.expecting import expected_of
from envdoctor.watch.moment import (
    Alarm,
    End,
    Expectation,
    Header,
    Line,
    Link,
    LogLine,
    Moment,
    Stacks,
)
from envdoctor.watch.recording import Recording
from envdoctor.watch.sampling import Sampler
from envdoctor.watch.stacks import difference, read_stacks
from envdoctor.watch.surroundings import rank_of
from envdoctor.watch.tree import GONE, state_of

PERIOD_S = 0.2
MOMENT_S = 1.0
GATHER_S = 5.0
EARLY_MOMENT_S, EARLY_S = 0.4, 180.0
"""A run may be over within minutes: at first it is looked at more closely."""
_NICE = 5


class Watcher(threading.Thread):
    """The thread that reads, records and judges while the child runs; nothing it meets harms the child."""

    def __init__(
        self,
        argv: Sequence[str],
        sampler: Sampler,
        recording: Recording | None,
        say: Callable[[Alarm], None],
        show: Callable[[str], None] = lambda _: None,
        stops: bool = False,
        gather: Callable[[float], Iterable[Alarm]] | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.sampler = sampler
        self.recording = recording
        self.alarms: list[Alarm] = []
        self.moments: list[Moment] = []
        self.links: dict[int, Link] = {}
        self.trouble = ""
        self.stacks: Stacks | None = None
        self.failures: list[str] = []
        self.expected: Expectation | None = None
        self._say, self._show = say, show
        self._stops = stops
        self._over = threading.Event()
        self._since = time.monotonic()
        self._kills = sampler.host.read().oom_kills or 0
        self.header = header_of(argv, sampler)
        self._judge = Judge(self.header)
        self._write(self.header)
        if self.header.cards:
            threading.Thread(target=self.expect, daemon=True).start()
        if gather is not None:
            threading.Thread(target=self._gather, args=(gather,), daemon=True).start()

    def run(self) -> None:
        """Sample until `finish`."""
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            self._loop()
        except Exception as error:  # whatever it is, the child goes on
            self.trouble = f"{type(error).__name__}: {error}"

    def _loop(self) -> None:
        turn, last = 0, -MOMENT_S
        while not self._over.is_set():
            t = self.t
            self.sampler.sample(t, turn % 5 == 0)
            due = EARLY_MOMENT_S if t < EARLY_S else MOMENT_S
            if t - last >= due - PERIOD_S / 2 and self._has_room(t):
                last = t
                self._take(self.sampler.fold(t))
            turn += 1
            self._over.wait(max(0.0, PERIOD_S - (self.t - t)))

    @property
    def t(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._since

    def _has_room(self, t: float) -> bool:
        return self.recording is None or self.recording.has_room(t)

    def _take(self, moment: Moment) -> None:
        self.moments.append(moment)
        self.links |= {link.card: link for link in moment.links}
        if len(self.moments) > 3600:
            del self.moments[:600]
        self._write(moment)
        self._tell_of_cards(moment.t)
        for alarm in self._judge.feed(moment):
            who = self.sampler.cards.who_else(alarm.card) if alarm.kind == "NEIGHBOUR" else ""
            self._raise(replace(alarm, text=f"{alarm.text}{who}"))
            if alarm.kind == "HANG":
                threading.Thread(target=self.inspect, args=(moment,), daemon=True).start()
        if self._stops and is_at_hand(self.alarms, moment):
            self._end_run(moment)
        self._show(status(moment))

    def _raise(self, alarm: Alarm) -> None:
        self.alarms.append(alarm)
        self._write(alarm)
        self._say(alarm)

    def inspect(self, moment: Moment) -> None:
        """Look where the ranks of a run that hangs stand, and say which one differs."""
        try:
            pids = self.sampler.pids
            self.stacks = Stacks(self.t, tuple(read_stacks(pids)), *read_collectives(pids))
            self._write(self.stacks)
            if told := difference(self.stacks, moment.stopped or ()):
                self._raise(told)
        except Exception as error:  # whatever it is, the child goes on
            self.trouble = f"{type(error).__name__}: {error}"

    def _gather(self, gather: Callable[[float], Iterable[Alarm]]) -> None:
        """Look at all ranks together, again and again."""
        while not self._over.wait(GATHER_S):
            for alarm in gather(self.t):
                self._raise(alarm)

    def _tell_of_cards(self, t: float) -> None:
        """Say what the driver told of a card that failed, in the words that the kernel's log has for it."""
        for line in self.sampler.cards.take_failures():
            self.failures.append(line)
            self._write(LogLine(t, line))
            self._say(Alarm(t, "XID", line))

    def _end_run(self, moment: Moment) -> None:
        """Ask every process of the run to end, so that trainers save."""
        self._stops = False
        pids = self.sampler.pids
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        text = f"SIGTERM sent to {len(pids)} processes, before memory runs out: {self.alarms[-1].text}"
        self._say(Alarm(moment.t, "OOM-FORETOLD", text))
        self._write(LogLine(moment.t, f"envdoctor: {text}"))

    def expect(self) -> None:
        """Ask for a prediction, and judge and record by it."""
        told = expected_of(self.header)
        if isinstance(told.get("longest"), int):
            self.expected = Expectation(self.t, told["longest"], str(told.get("what", "")))
            self._judge.expect(self.expected)
            self._write(self.expected)

    def _write(self, line: Line) -> None:
        if self.recording is not None:
            self.recording.write(line)

    def finish(self, ending: Ending | None) -> End:
        """Take the last readings, write the end and return it; None: the end of a process not our child."""
        self._over.set()
        self.join(5.0)
        t = self.t
        with contextlib.suppress(Exception):
            self.sampler.sample(t, True)
            self.sampler.log.close()
            self._take(self.sampler.fold(t))
        for line in self.sampler.log.telling[-100:]:
            self._write(LogLine(t, line))
        kills = (self.sampler.host.read().oom_kills or 0) - self._kills
        kills = max(0, kills)
        if ending is None:
            end = End(t, None, None, "a process that was not started here", kills)
        else:
            most = ending.max_rss_bytes // MIB
            end = End(t, ending.code, ending.signal, who_sent(ending), kills, most)
        self._write(end)
        if self.recording is not None:
            self.recording.close()
        return end


_AT_HAND = 0.85
"""What has passed of the time that a foretold end leaves, when it is at hand."""
_AT_HAND_S = 5.0


def is_at_hand(alarms: Sequence[Alarm], moment: Moment) -> bool:
    """True when an end for want of memory that was foretold is about to come."""
    told = [a for a in alarms if a.kind in ("HOST-LEAK", "OOM-FORETOLD") and a.eta_s is not None]
    if not told:
        return False
    last = told[-1]
    left = (last.eta_s or 0.0) - (moment.t - last.t)
    return left < max(_AT_HAND_S, (1 - _AT_HAND) * (last.eta_s or 0.0))


def who_sent(ending: Ending) -> str:
    """Return who sent the signal that ended the command, as far as it came by way of the watch."""
    for sent in reversed(ending.sent):
        if sent.number == ending.signal:
            who = f"process {sent.sender} ({sent.name})" if sent.sender else "the kernel, as a terminal's key"
            return f"the signal came from {who}"
    return ""


def header_of(argv: Sequence[str], sampler: Sampler) -> Header:
    """Return what a recording opens with."""
    unread = [] if sampler.source.is_read else ["output: it goes where it cannot be read beside"]
    if sampler.cards.reason:
        unread.append(f"cards: {sampler.cards.reason}")
    return Header(
        tuple(argv), time.strftime("%Y-%m-%dT%H:%M:%S%z"), _cwd(), os.getpid(),
        rank_of(os.environ), socket.gethostname(), sampler.host.read().bound,
        sampler.cards.names, __version__, unread=tuple(unread),
    )  # fmt: skip


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def wait_for(pid: int) -> None:
    """Return once a process has ended; Ctrl-C ends the waiting."""
    with contextlib.suppress(KeyboardInterrupt):
        while state_of(pid) not in GONE:
            time.sleep(PERIOD_S)


def status(moment: Moment) -> str:
    """Return a moment in a line."""
    steps = f"step {moment.step}{f'/{moment.of}' if moment.of else ''}" if moment.step is not None else ""
    host = f"host {moment.host / 1024:.1f} GiB" if moment.host is not None else ""
    cards = [f"GPU {i} {c.used / 1024:.1f}/{c.total / 1024:.0f} GiB" for i, c in enumerate(moment.cards)]
    return "envdoctor: " + ", ".join(filter(None, (moment.phase, steps, *cards[:4], host)))
