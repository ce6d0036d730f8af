"""A line through noisy readings, robustly, and whether they are a growth that goes on.

Slope and interval are Theil and Sen's (the median of all pairs' slopes; its interval from the order of the
slopes, Sen 1968, doi:10.1080/01621459.1968.10480934): a third of the readings may be anything. That a line
can be laid says little: plateaus after a rise, single jumps and the teeth of a saw have slopes as well. They
are told apart by what a steady growth shows and they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from envdoctor.values import dataclass

LEAST_POINTS = 12
_MOST_POINTS = 48
_SIGMAS = 4.0
"""Half the width of the slope's interval; wide, because neighbouring readings are alike."""
_LATE_SHARE = 0.8
"""A steady growth grows in its last third at least so much of what it grew in the one before."""
_LARGEST_JUMP = 0.4
"""No single rise makes up more of a steady growth."""
_SURE = 0.3
"""The interval's lower end is at least this share of the slope."""
_NOISES = 3.0
"""The growth passes the scatter around the line by this factor."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A growth that goes on: per unit of x, with its interval, and where it stands at the last x."""

    slope: float
    low: float
    high: float
    level: float
    span: float
    scatter: float

    def until(self, limit: float) -> tuple[float, float, float]:
        """Return how far it is in x to `limit`: expected, at the soonest and at the latest."""
        room = max(0.0, limit - self.level)
        return room / self.slope, max(0.0, room - self.scatter) / self.high, (room + self.scatter) / self.low


def find_growth(xs: Sequence[float], ys: Sequence[float], floor: float) -> Growth | None:
    """Return the growth in readings `ys` at rising `xs`, or None where it is none, or less than `floor`."""
    if len(xs) < LEAST_POINTS or xs[-1] <= xs[0]:
        return None
    if median(ys[-5:]) - median(ys[:5]) < floor / 2:
        return None
    xs, ys = _thinned(xs, ys)
    third = len(ys) // 3
    first, middle, last = median(ys[:third]), median(ys[third:-third]), median(ys[-third:])
    grown = (last - first) * 1.5
    if grown < floor or last - middle < _LATE_SHARE * (middle - first) or middle <= first:
        return None
    if _largest_rise(ys) > _LARGEST_JUMP * grown:
        return None
    slope, low, high = _theil_sen(xs, ys)
    if low <= _SURE * slope:
        return None
    offset = median(y - slope * x for x, y in zip(xs, ys, strict=True))
    scatter = 1.48 * median(abs(y - slope * x - offset) for x, y in zip(xs, ys, strict=True))
    if slope * (xs[-1] - xs[0]) < _NOISES * scatter:
        return None
    return Growth(slope, low, high, offset + slope * xs[-1], xs[-1] - xs[0], scatter)


def _thinned(xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return at most `_MOST_POINTS` points: medians of neighbours."""
    size = -(-len(xs) // _MOST_POINTS)
    starts = range(len(xs) % size, len(xs), size)
    return [median(xs[i : i + size]) for i in starts], [median(ys[i : i + size]) for i in starts]


def _largest_rise(ys: Sequence[float]) -> float:
    """Return the largest rise from one reading to the next that is never taken back afterwards."""
    kept = list(ys)
    for i in range(len(kept) - 2, -1, -1):
        kept[i] = min(kept[i], kept[i + 1])
    return max((b - a for a, b in pairwise(kept)), default=0.0)


def _theil_sen(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float, float]:
    n = len(xs)
    slopes = sorted(
        (ys[j] - ys[i]) / (xs[j] - xs[i]) for i in range(n) for j in range(i + 1, n) if xs[j] > xs[i]
    )
    count = len(slopes)
    half = _SIGMAS * (n * (n - 1) * (2 * n + 5) / 18) ** 0.5 / 2
    low, high = int(count / 2 - half), int(count / 2 + half) + 1
    return slopes[count // 2], slopes[max(0, low)], slopes[min(count - 1, high)]


def chance_of_passing(records: Sequence[float], at: float, limit: float, ahead: float) -> float:
    """Return the chance that maxima so far, after `at` rows, pass `limit` within `ahead` rows more.

    Of rows that come in no order, the rises from one maximum to the next scatter like an exponential's
    (Rényi 1962): their mean tells how the tail of the rows falls off. The later rises count, where a tail
    that ends is seen to end, and of their mean the cautious end.
    """
    rises = [b - a for a, b in pairwise(records)][-6:]
    if len(rises) < 3 or at <= 0:
        return 0.0
    mean = sum(rises) / len(rises) * (1 - len(rises) ** -0.5 / 2)
    distance = (limit - records[-1]) / mean
    expected = ahead / at * 2.718281828 ** -min(distance, 50.0)
    return float(1 - 2.718281828**-expected)
