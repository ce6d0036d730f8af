"""`--collect DIR`: each rank's watch writes into a shared folder; all are read together, live and later.

No server: the folder is the meeting place. Whoever looks (`--replay DIR`, or the watch of the first rank
while it runs) reads the ends of all recordings there.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from envdoctor.errors import InputError
from envdoctor.inputs import parse_json
from envdoctor.report.document import Block, Document, Section, Table, Text, Tone
from envdoctor.values import dataclass
from envdoctor.watch.death import Story
from envdoctor.watch.moment import Alarm, End, Header, Moment, from_json, to_json
from envdoctor.watch.replaying import replay
from envdoctor.watch.report import how_it_ended
from envdoctor.watch.surroundings import rank_of
from envdoctor.watch.words import amount, duration

_TAIL = 1 << 16
_HEAD = 1 << 15
_MOST = 4096
_BEHIND_S = 60.0
"""How long a rank may be behind before that is said."""


@dataclass(frozen=True, slots=True)
class Rank:
    """How one rank stands: its last moment and its end, and when its recording was written last."""

    name: str
    rank: int | None
    host: str
    last: Moment
    end: End | None
    written: float

    @property
    def failed(self) -> bool:
        """True once it has ended, and not well."""
        return self.end is not None and bool(self.end.code or self.end.signal)

    @property
    def order(self) -> tuple[bool, int, str]:
        """Ranks first, in their order."""
        return self.rank is None, self.rank or 0, self.name

    def in_words(self) -> str:
        """Return who it is."""
        return f"rank {self.rank} on {self.host}" if self.rank is not None else f"{self.name} on {self.host}"


def place_of(folder: Path) -> Path:
    """Return where this process' watch records within a shared folder; raises InputError for a file."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--collect {folder}: not a folder")
    rank = rank_of(os.environ)
    name = f"rank-{rank:05d}" if rank is not None else f"pid-{os.getpid()}"
    return folder / f"{name}-{socket.gethostname()}.jsonl"


def recordings_in(folder: Path) -> list[Path]:
    """Return the recordings of a folder; raises InputError where there is none."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")[:_MOST]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    if not found:
        raise InputError(f"{folder}: no recording (*.jsonl) in it")
    return found


def read_ranks(folder: Path) -> list[Rank]:
    """Return how the ranks stand, by their recordings' heads and ends; what is malformed is passed over."""
    found = [rank for path in recordings_in(folder) if (rank := _read(path)) is not None]
    return sorted(found, key=lambda rank: rank.order)


def _read(path: Path) -> Rank | None:
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD).split(b"\n")[0]
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - _TAIL))
            tail = stream.read(_TAIL).split(b"\n")
            written = os.fstat(stream.fileno()).st_mtime
    except OSError:
        return None
    lines = [line for data in (head, *tail[:-1]) if (line := _line(data)) is not None]
    header = next((line for line in lines if isinstance(line, Header)), None)
    if header is None:
        return None
    moments = [line for line in lines if isinstance(line, Moment)]
    end = next((line for line in lines if isinstance(line, End)), None)
    last = moments[-1] if moments else Moment(0.0)
    return Rank(path.stem, header.rank, header.host, last, end, written)


def _line(data: bytes) -> object | None:
    try:
        return from_json(parse_json(data))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


class Gathering:
    """What the ranks of a folder show together: who is behind, and who ended first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._since: dict[str, float] = {}
        self._said: set[str] = set()

    def look(self, t: float, now: float | None = None) -> Iterator[Alarm]:
        """Yield what the ranks' recordings give cause to say; `t` seconds after the start."""
        try:
            ranks = read_ranks(self._folder)
        except InputError:
            return
        yield from self._ended(ranks, t)
        yield from self._behind(ranks, t, time.time() if now is None else now)

    def _ended(self, ranks: Sequence[Rank], t: float) -> Iterator[Alarm]:
        bad = [rank for rank in ranks if rank.failed]
        if bad and len(bad) < len(ranks) and "ended" not in self._said:
            self._said.add("ended")
            yield Alarm(t, "HANG", f"{first_to_end(bad).in_words()} has ended: the others will wait for it")

    def _behind(self, ranks: Sequence[Rank], t: float, now: float) -> Iterator[Alarm]:
        steps = [rank.last.step for rank in ranks if rank.last.step is not None]
        if len(steps) < 2:
            return
        usual = median(steps)
        for rank in ranks:
            late = rank.last.step is not None and rank.last.step < usual - max(1, 0.02 * usual)
            if not late or rank.end is not None:
                self._since.pop(rank.name, None)
            elif t - self._since.setdefault(rank.name, t) >= _BEHIND_S and rank.name not in self._said:
                self._said.add(rank.name)
                told = f"{rank.in_words()} is at step {rank.last.step}, the others at {usual:.0f}"
                silent = now - rank.written
                more = f"; its watch wrote nothing for {duration(silent)}" if silent > _BEHIND_S else ""
                yield Alarm(t, "STRAGGLER", f"{told}{more}")


def first_to_end(ranks: Sequence[Rank]) -> Rank:
    """Return the rank whose recording was ended first: what ended the others as a rule."""
    return min(ranks, key=lambda rank: rank.written)


Told = Sequence[tuple[Rank, Story]]
"""How the ranks of a folder stand, and what each recording tells."""


def read_together(folder: Path) -> Told:
    """Return the ranks of a folder with their recordings, judged again; raises InputError."""
    return [(rank, replay(folder / f"{rank.name}.jsonl")) for rank in read_ranks(folder)]


def exit_code_of(told: Told) -> int:
    """Return 1 where a rank failed or an alarm was given, else 0."""
    return int(any(rank.failed or story.alarms for rank, story in told))


def document(told: Told) -> Document:
    """Return the ranks of a folder as a report."""
    bad = [rank for rank, _ in told if rank.failed]
    rows = tuple(_row(rank) for rank, _ in told)
    blocks: list[Block] = [Table(("rank", "host", "step", "memory", "GPU", "end"), rows)]
    if bad:
        first = first_to_end(bad)
        story = next(story for rank, story in told if rank is first)
        blocks.insert(0, Text(f"First to end: {first.in_words()}, {how_it_ended(story)}."))
    said = [(rank.in_words(), duration(a.t), a.kind, a.text) for rank, s in told for a in s.alarms]
    if said:
        blocks.append(Section("Said while they ran", (Table(("", "after", "", ""), tuple(said[:60])),)))
    tone: Tone = "error" if bad else "warning" if said else "ok"
    unended = sum(rank.end is None for rank, _ in told)
    title = f"{len(told)} ranks, {len(bad)} failed, {unended} without an end"
    return Document(title, tone, tuple(blocks))


def as_terms(told: Told) -> dict[str, Any]:
    """Return the ranks of a folder in plain terms."""
    ranks = [
        {
            "recording": rank.name, "rank": rank.rank, "host": rank.host, "step": rank.last.step,
            "t": rank.last.t, "end": asdict(rank.end) if rank.end else None,
            "alarms": [to_json(alarm) for alarm in story.alarms],
        }
        for rank, story in told
    ]  # fmt: skip
    return {"schema": "envdoctor.watch-ranks/1", "ranks": ranks, "exit_code": exit_code_of(told)}


def _row(rank: Rank) -> tuple[str, ...]:
    last = rank.last
    cards = max((card.top for card in last.cards if card.ours != 0), default=None)
    end = rank.end
    told = "none yet" if end is None else f"signal {end.signal}" if end.signal else f"exit code {end.code}"
    return (
        "" if rank.rank is None else str(rank.rank), rank.host, "" if last.step is None else str(last.step),
        amount(last.host or 0), "" if cards is None else amount(cards), told,
    )  # fmt: skip
