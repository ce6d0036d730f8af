"""Device memory against batch and against length: the stated run at a quarter to four times of each."""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor.errors import InputError
from envdoctor.memory.answer import ANALYTIC, Question, answer
from envdoctor.memory.run import Prediction, ServingRun, TrainingRun
from envdoctor.values import dataclass, replace

_QUARTERS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Curve:
    """`points` are (setting, device bytes), predicted analytically, in the setting's order.

    Only the stated run is replayed: the others are taken to have as much reserved of what is allocated.
    """

    label: str
    points: tuple[tuple[int, int], ...]


def curves_of(question: Question, stated: Prediction) -> tuple[Curve, ...]:
    """Return the curves of a question's run; none for an engine, whose memory its utilisation sets."""
    if isinstance(question.run, ServingRun):
        return ()
    rough = replace(question, tier=ANALYTIC, notes=(), close=False)
    held = (stated.peak_reserved_bytes - stated.idle_bytes) / stated.peak_allocated_bytes
    batch = Curve("batch", tuple(_points(rough, question.run, "batch", held)))
    return batch, Curve("length", tuple(_points(rough, question.run, "seq", held)))


def _points(question: Question, run: TrainingRun, name: str, held: float) -> Iterator[tuple[int, int]]:
    stated = getattr(run, name)
    for setting in sorted({max(1, stated * quarters // 4) for quarters in _QUARTERS}):
        try:
            found = answer(replace(question, run=replace(run, **{name: setting})))
        except InputError:  # such as more positions than the model has learned
            continue
        outside = found.device_bytes - found.peak_reserved_bytes
        yield setting, int(found.peak_allocated_bytes * held) + outside
