"""Device memory against batch and against length: the stated run at a quarter to four times of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from envdoctor.errors import InputError
from envdoctor.memory.answer import answer
from envdoctor.memory.constants import Constants
from envdoctor.memory.run import ServingRun, TrainingRun

_QUARTERS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Curve:
    """`points` are (setting, device bytes), predicted analytically, in the setting's order."""

    label: str
    points: tuple[tuple[int, int], ...]


def curves_of(
    run: TrainingRun | ServingRun, constants: Constants, gpu_bytes: int | None
) -> tuple[Curve, ...]:
    """Return the run's curves; none for an engine, whose memory its utilisation sets."""
    if isinstance(run, ServingRun):
        return ()
    batch = Curve("batch", tuple(_points(run, "batch", constants, gpu_bytes)))
    return batch, Curve("length", tuple(_points(run, "seq", constants, gpu_bytes)))


def _points(
    run: TrainingRun, name: str, constants: Constants, gpu_bytes: int | None
) -> Iterator[tuple[int, int]]:
    stated = getattr(run, name)
    for setting in sorted({max(1, stated * quarters // 4) for quarters in _QUARTERS}):
        try:
            yield setting, answer(replace(run, **{name: setting}), constants, gpu_bytes, {}).device_bytes
        except InputError:  # such as more positions than the model has learned
            continue
