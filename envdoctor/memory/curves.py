"""Device memory against batch and against length: the stated run at a quarter to four times of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from envdoctor.errors import InputError
from envdoctor.memory.answer import ANALYTIC, Question, answer
from envdoctor.memory.run import ServingRun, TrainingRun
from envdoctor.values import dataclass

_QUARTERS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Curve:
    """`points` are (setting, device bytes), predicted analytically, in the setting's order."""

    label: str
    points: tuple[tuple[int, int], ...]


def curves_of(question: Question) -> tuple[Curve, ...]:
    """Return the curves of a question's run; none for an engine, whose memory its utilisation sets."""
    if isinstance(question.run, ServingRun):
        return ()
    plain = replace(question, tier=ANALYTIC, notes=())
    batch = Curve("batch", tuple(_points(plain, question.run, "batch")))
    return batch, Curve("length", tuple(_points(plain, question.run, "seq")))


def _points(question: Question, run: TrainingRun, name: str) -> Iterator[tuple[int, int]]:
    stated = getattr(run, name)
    for setting in sorted({max(1, stated * quarters // 4) for quarters in _QUARTERS}):
        try:
            yield setting, answer(replace(question, run=replace(run, **{name: setting}))).device_bytes
        except InputError:  # such as more positions than the model has learned
            continue
