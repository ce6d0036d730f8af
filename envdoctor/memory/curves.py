"""What the stated run would take otherwise: at other batches and lengths, and with what makes it smaller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def otherwise(
    question: Question, stated: Prediction
) -> tuple[tuple[Curve, ...], tuple[tuple[str, int], ...]]:
    """Return the curves of a training run, and changes each of which alone makes it fit where it does not.

    A change is an option with the device bytes that it leads to. None for an engine, whose memory its
    utilisation sets.
    """
    run, size = question.run, question.gpu_bytes
    if isinstance(run, ServingRun):
        return (), ()
    about = _Estimate(question, stated)
    curves = tuple(
        Curve(label, tuple(about.points(run, name)))
        for label, name in (("batch", "batch"), ("length", "seq"))
    )
    if size is None or stated.fits(size) is not False:
        return curves, ()
    found = [(option, about.bytes(run, **changed)) for option, changed in _smaller(run)]
    for curve, option in zip(curves, ("--batch", "--seq"), strict=True):
        found += [(f"{option} {at}", took) for at, took in curve.points if took <= size][-1:]
    return curves, tuple((option, took) for option, took in found if took is not None and took <= size)


def _smaller(run: TrainingRun) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield changes that cost least of what is learned first."""
    if not run.grad_ckpt:
        yield "--grad-ckpt", {"grad_ckpt": True}
    if not run.liger:
        yield "--liger", {"liger": True}
    if run.method == "full":
        yield "--optim adamw_8bit", {"optim": "adamw_8bit"}
        yield "--method lora", {"method": "lora"}
    if run.method in ("full", "lora"):
        yield "--method qlora", {"method": "qlora"}
    if run.parallel in ("none", "ddp") and run.tp * run.pp == 1:
        for cards in sorted({max(2, run.gpus), 8}):
            yield f"--gpus {cards} --parallel zero3", {"gpus": cards, "parallel": "zero3"}


class _Estimate:
    """Bytes on the device of runs like one that was replayed: as much reserved of what is allocated."""

    def __init__(self, question: Question, stated: Prediction) -> None:
        self._rough = replace(question, tier=ANALYTIC, notes=(), close=False)
        self._held = (stated.peak_reserved_bytes - stated.idle_bytes) / stated.peak_allocated_bytes

    def bytes(self, run: TrainingRun, **changed: Any) -> int | None:
        """Return what the run would take, or None for what cannot be, such as more positions than learned."""
        try:
            found = answer(replace(self._rough, run=replace(run, **changed)))
        except InputError:
            return None
        return int(found.peak_allocated_bytes * self._held) + found.device_bytes - found.peak_reserved_bytes

    def points(self, run: TrainingRun, name: str) -> Iterator[tuple[int, int]]:
        """Yield a setting at a quarter to four times of what is stated, and what it would take."""
        stated = getattr(run, name)
        for setting in sorted({max(1, stated * quarters // 4) for quarters in _QUARTERS}):
            if (took := self.bytes(run, **{name: setting})) is not None:
                yield setting, took
