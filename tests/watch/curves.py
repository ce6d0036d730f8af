"""Moments of runs as a few numbers: what a test needs of a recording."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from envdoctor.watch.alarms import Judge
from envdoctor.watch.moment import Alarm, Card, Header, Moment

GIB = 1024
Curve = Callable[[int], float]


def steady(_: int) -> float:
    return 8.0 * GIB


def moments(
    host: Curve = steady, card: Curve = steady, *, seconds: int = 600, noise: float = 10.0,
    of: int | None = None, others: Curve = lambda _: 0.0, host_total: float = 64 * GIB,
    card_total: int = 80 * GIB,
) -> Iterator[Moment]:  # fmt: skip
    """Yield a moment a second, a step each, until memory runs out or the time is over."""
    rng = random.Random(7)
    for t in range(1, seconds):
        held = host(t) + rng.gauss(0, noise)
        used = card(t) + others(t)
        yield Moment(
            float(t), t, of, 1.0, "training", host=int(held), room=int(max(0.0, host_total - held)),
            cores=1.0, disk=500 * GIB, shm=30 * GIB, silent=0.1,
            cards=(Card(int(used), int(used), card_total, int(card(t)), 98, 600, 1900),),
        )  # fmt: skip
        if held > host_total or used > card_total * 0.985:
            return


def alarms(curve: Iterator[Moment], header: Header | None = None) -> list[Alarm]:
    judge = Judge(header or Header())
    return [alarm for moment in curve for alarm in judge.feed(moment)]
