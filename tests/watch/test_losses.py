"""A loss that stands still is told where nothing moves at all, and never where it falls slowly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from envdoctor.watch.alarms import Judge
from envdoctor.watch.loglines import LogReader
from envdoctor.watch.moment import STILL, Header, Moment

Report = Callable[[int, random.Random], str]


def told(report: Report, steps: int = 1200, every: int = 5) -> Iterator[str]:
    """Yield what is said of a run that reports every few steps."""
    log, judge, rng = LogReader(), Judge(Header()), random.Random(3)
    for step in range(0, steps, every):
        log.feed(f"step {step}\n{report(step, rng)}\n".encode())
        same, flat = (n if n >= STILL else None for n in (log.same_loss, log.no_gradient))
        moment = Moment(float(step), log.step, None, log.loss, "training", same_loss=same, no_gradient=flat)
        yield from (f"{alarm.kind} {alarm.text}" for alarm in judge.feed(moment))


STANDS: dict[str, Report] = {
    "to the last digit": lambda step, rng: "{'loss': '0.6931', 'grad_norm': '0.4', 'learning_rate': '0'}",
    "without a gradient": lambda step, rng: f"{{'loss': {rng.gauss(2.3, 0.2):.4f}, 'grad_norm': 0.0}}",
}
SANE: dict[str, Report] = {
    "a slow decline": lambda step, rng: f"{{'loss': {2.3 - step / 9e4:.4f}, 'grad_norm': 0.1}}",
    "a noisy plateau": lambda step, rng: f"{{'loss': {rng.gauss(1.9, 0.02):.4f}, 'grad_norm': 0.3}}",
    "GRPO's loss of 0": lambda step, rng: "{'loss': 0.0, 'grad_norm': 0.21, 'reward': 0.5}",
    "few digits": lambda step, rng: "loss 0.01 lr 1e-5",
    "a gradient told wrong": lambda step, rng: f"{{'loss': {3 - step / 1e3:.4f}, 'grad_norm': 0.0}}",
    "a report a step of each rank": lambda step, rng: "\n".join([f"loss: {rng.gauss(2, 0.1):.4f}"] * 64),
    "a gradient that is now and then 0": (
        lambda step, rng: f"{{'loss': {rng.gauss(1, 0.1):.4f}, 'grad_norm': {step % 50 / 50}}}"
    ),
}


@pytest.mark.parametrize("report", STANDS.values(), ids=STANDS)
def test_what_does_not_move_is_said_once(report: Report) -> None:
    (said,) = told(report)
    assert said.startswith("LOSS the ")
    assert "nothing is learned" in said


@pytest.mark.parametrize("report", SANE.values(), ids=SANE)
def test_what_moves_is_not(report: Report) -> None:
    assert list(told(report)) == []
