"""What an op measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Trial:
    """What an op measures: `call()` on the device, and `reference()`, the same in float64 on the CPU.

    Both return a tensor or a tuple of tensors; `call` starts from the same inputs each time. `plain(numpy)`
    computes the same once more, in NumPy's float64: on the CPU torch must not be its own judge.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        reference: Callable[[], Any],
        plain: Callable[[Any], Any] | None = None,
    ) -> None:
        self.call = call
        self.reference = reference
        self.plain = plain


class Pace:
    """What a speed measures: `step()` sets the device to `amount` of the op's unit, without waiting for it.

    `verify()` returns what is wrong with what the steps made, empty for nothing. `finished`: a figure that
    the processes of a collective measured; then no step is made. `way_back`: a second one; the slower counts.
    """

    def __init__(
        self,
        step: Callable[[], Any],
        amount: float,
        verify: Callable[[], str],
        finished: float | None = None,
    ) -> None:
        self.step = step
        self.amount = amount
        self.verify = verify
        self.finished = finished
        self.way_back: Pace | None = None
