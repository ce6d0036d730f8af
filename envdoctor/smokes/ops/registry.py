"""How an op is made known: one decorator line above a function that returns a `Trial` or a `Pace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import Context

Maker = Callable[[Context], Any]
"""Returns a `Trial`, or a `Pace` for a speed."""


class Skip(Exception):
    """Raised by an op that does not apply here; its text is the reason."""


class Op:
    """A registered op and its needs; `op` says what each means."""

    def __init__(
        self,
        name: str,
        function: Maker,
        *,
        tolerance: float,
        needs: tuple[str, ...] = (),
        min_sm: int = 0,
        cpu: bool = True,
        quick: bool = True,
        lane: str = "",
        gpus: str = "each",
        last: bool = False,
        patience: float = 1.0,
        repeats: int = 3,
        spread: float = 8.0,
        unit: str = "",
    ) -> None:
        self.name = name
        self.function = function
        self.summary = (function.__doc__ or "").strip().split("\n")[0]
        self.tolerance = tolerance
        self.needs = tuple(needs)
        self.min_sm = min_sm
        self.cpu = cpu
        self.quick = quick
        self.lane = lane or (self.needs[0] if self.needs else "torch")
        self.gpus = gpus
        self.last = last
        self.patience = patience
        self.repeats = repeats
        self.spread = spread
        self.unit = unit

    def describe(self) -> dict[str, Any]:
        """Return what the parent plans with, in JSON terms."""
        kept = ("name", "summary", "tolerance", "needs", "quick", "lane", "gpus", "last", "patience", "unit")
        return {key: getattr(self, key) for key in kept}


OPS: dict[str, Op] = {}


def op(name: str, **options: Any) -> Callable[[Maker], Maker]:
    """Register the function below as the op `name`.

    tolerance: the largest ‖out−ref‖/‖ref‖ that passes · needs: modules it imports (absent: skipped) ·
    min_sm: least compute capability, as 89 · cpu: it has a CPU path · quick: it is in the default set ·
    lane: ops of one lane share a warm worker (default: the first need) · gpus: "each" card, "all"
    together, or every "pair" · last: it disturbs others and runs at the end · patience: factor on the
    time limit · repeats: calls after the first · spread: how many tolerances one element alone may be off,
    of itself and of the root mean square of all · unit: a speed, measured in this; returns a `Pace`.
    """

    def register(function: Maker) -> Maker:
        if name in OPS:
            raise ValueError(f"the op {name} is registered twice")
        OPS[name] = Op(name, function, **options)
        return function

    return register
