"""What readings showed so far: curves in three grains, maxima by step, how fast steps come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from envdoctor.watch.moment import Card, Moment
from envdoctor.watch.trend import LEAST_POINTS, Growth, find_growth

_TIERS = (1, 12, 150)
"""Moments that make one point of a history; the last of a tier's points are kept."""
_LOOK_EVERY = (4, 1, 1)
"""New points of a tier after which it is looked at again."""
_POINTS = 300
_TEETH = 1.3
"""A rise counts once it passes the falls that were seen before by this factor."""
_ROWS_DIFFER = 1.02
"""A maximum that passes the first by this factor shows rows of several lengths."""


@dataclass(slots=True)
class History:
    """A quantity by x, in three grains, with the falls that it showed and what stood out of it."""

    tiers: tuple[deque[tuple[float, float]], ...] = field(
        default_factory=lambda: tuple(deque(maxlen=_POINTS) for _ in _TIERS)
    )
    pending: list[list[tuple[float, float]]] = field(default_factory=lambda: [[] for _ in _TIERS])
    highest: float = float("-inf")
    lowest_since: float = float("inf")
    fall: float = 0.0
    """The deepest fall from a height that was reached before."""
    excursion: float = 0.0
    count: int = 0

    def add(self, x: float, y: float) -> list[int]:
        """Take a reading; return the tiers that have a new point."""
        self.count += 1
        self._note_fall(y)
        new = []
        for tier, size in enumerate(_TIERS):
            pending = self.pending[tier]
            pending.append((x, y))
            if len(pending) >= size:
                points = self.tiers[tier]
                at = pending[-1][0]
                if not points or at > points[-1][0]:
                    points.append((at, min(value for _, value in pending)))
                    if self.count // size % _LOOK_EVERY[tier] == 0:
                        new.append(tier)
                pending.clear()
        return new

    def _note_fall(self, y: float) -> None:
        if y >= self.highest:
            self.highest = self.lowest_since = y
        else:
            self.lowest_since = min(self.lowest_since, y)
            self.fall = max(self.fall, self.highest - self.lowest_since)

    def stand_out(self, y: float) -> None:
        """Take a reading of a phase that comes and goes: how far it stands above the rest."""
        if self.tiers[0]:
            self.excursion = max(self.excursion, y - median(v for _, v in list(self.tiers[0])[-5:]))

    def growths(self, tiers: Iterable[int], floor: float) -> Iterator[Growth]:
        """Yield the growths that end now, over the whole of each grain and its later parts."""
        for tier in tiers:
            points = list(self.tiers[tier])
            size = len(points)
            while size >= LEAST_POINTS:
                xs, ys = zip(*points[-size:], strict=True)
                growth = find_growth(xs, ys, floor)
                if growth is not None and growth.slope * growth.span > _TEETH * self._teeth(ys):
                    yield growth
                    break
                size = size // 2

    def _teeth(self, ys: tuple[float, ...]) -> float:
        """The falls seen before; what was never fallen back from since counts in full."""
        return self.fall if max(ys) - min(ys) <= self.fall * 4 else self.fall / 2


@dataclass(slots=True)
class CardHistory:
    """What one card showed: this run's memory, that of others, and the maxima by step."""

    ours: History = field(default_factory=History)
    others: History = field(default_factory=History)
    others_first: int | None = None
    records: list[float] = field(default_factory=list)
    _low: float = float("inf")
    _high: float = 0.0

    def swing(self, card: Card) -> float:
        """How far this run's memory goes up and down."""
        ours = float(card.ours or 0)
        self._low, self._high = min(self._low, ours), max(self._high, ours)
        return self._high - self._low

    @property
    def rows_differ(self) -> bool:
        """True once a later maximum passed the first one plainly."""
        return len(self.records) > 1 and self.records[-1] > _ROWS_DIFFER * self.records[0]

    def take_record(self, most: float, steps: int) -> bool:
        """Note a new maximum after the first steps; True when it is one."""
        if steps < 5:
            self.records = [most]
            return False
        if most <= self.records[-1] * 1.002 if self.records else False:
            return False
        self.records.append(most)
        return True


@dataclass(slots=True)
class Pace:
    """How fast steps come."""

    first: int = 0
    step_s: float = 1.0
    part_s: float = 1.0
    by_steps: bool = False
    _recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=120))
    _part: tuple[float, int] | None = None

    def feed(self, moment: Moment) -> None:
        """Take a moment in."""
        if moment.part is not None:
            if self._part and moment.part[0] > self._part[1]:
                self.part_s = (moment.t - self._part[0]) / (moment.part[0] - self._part[1])
            self._part = (moment.t, moment.part[0])
        if moment.step is None:
            return
        if not self._recent or moment.step < self._recent[-1][1]:
            self._recent.clear()
            self.first = moment.step
        self._recent.append((moment.t, moment.step))
        (t, step), (now, last) = self._recent[0], self._recent[-1]
        if last > step:
            self.by_steps = True
            self.step_s = (now - t) / (last - step)
