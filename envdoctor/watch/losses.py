"""What the losses that a run reports give cause to say: one that is no number, one that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from envdoctor.watch.moment import Alarm, Moment

_REPORTS, _STEPS = 50, 300
"""Reports in a row, and the steps that they are from, after which what does not move stands still."""
_FALLS = 0.02
"""A loss that has lost this share of itself falls, whatever its gradient is said to be."""


@dataclass(slots=True)
class _Still:
    """Reports in a row that say the same, from the step on at which they were first told."""

    step: int | None = None
    losses: list[float] = field(default_factory=list)

    def steps(self, reports: int | None, moment: Moment) -> int:
        """Take a moment in; return over how many steps nothing moved, 0 before it is plain."""
        if reports is None or moment.step is None:
            self.step, self.losses = None, []
            return 0
        self.step = moment.step if self.step is None else self.step
        if moment.loss is not None:
            self.losses.append(moment.loss)
        passed = moment.step - self.step
        return passed if reports >= _REPORTS and passed >= _STEPS else 0

    @property
    def falls(self) -> bool:
        """True where the loss falls all the same, as where a gradient is told wrong."""
        third = len(self.losses) // 3
        if not third:
            return True
        first = median(self.losses[:third])
        return median(self.losses[-third:]) < first - _FALLS * abs(first)


@dataclass(slots=True)
class Losses:
    """A loss that is no number; one that is the same to the last digit, or has no gradient, for long.

    A slow decline or a noisy plateau is not told: a run may be done, or need patience.
    """

    said: set[str] = field(default_factory=set)
    same: _Still = field(default_factory=_Still)
    flat: _Still = field(default_factory=_Still)

    def feed(self, moment: Moment) -> Iterator[Alarm]:
        """Yield what this moment gives cause to say."""
        if moment.nan:
            where = f" at step {moment.step}" if moment.step is not None else ""
            text = f"the loss or its gradient is no number{where}: what follows is lost"
            yield from self._say("NAN", "nan", moment, text)
        if steps := self.same.steps(moment.same_loss, moment):
            text = f"the loss is {moment.loss} to the last digit since {steps} steps: nothing is learned"
            yield from self._say("LOSS", "still", moment, text)
        if (steps := self.flat.steps(moment.no_gradient, moment)) and not self.flat.falls:
            text = f"the gradient is 0 since {steps} steps: nothing is learned any more"
            yield from self._say("LOSS", "still", moment, text)

    def _say(self, kind: str, key: str, moment: Moment, text: str) -> Iterator[Alarm]:
        if key not in self.said:
            self.said.add(key)
            yield Alarm(moment.t, kind, text)
