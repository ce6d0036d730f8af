"""What a run of smokes found: one verdict an op, and the whole as text, JSON or JUnit takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from envdoctor.facts import Speed
from envdoctor.facts.codec import encode
from envdoctor.values import Shown

Outcome = Literal["passed", "failed", "skipped", "crashed", "timeout"]
BAD_OUTCOMES: frozenset[Outcome] = frozenset({"failed", "crashed", "timeout"})
SCHEMA = "envdoctor.smoke/1"


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """One op's verdict; errors are ‖out−ref‖/‖ref‖, times are milliseconds, `stderr_tail` its last lines."""

    op: str
    outcome: Outcome
    reason: str | None = None
    max_rel_error: float | None = None
    tolerance: float | None = None
    first_ms: float | None = None
    repeat_ms: float | None = None
    signal: str | None = None
    stderr_tail: str = ""
    gpu: int | None = None
    speed: Speed | None = None

    @property
    def label(self) -> str:
        """The op, with the card it ran on where that is not the first: `matmul.bf16@1`."""
        return f"{self.op}@{self.gpu}" if self.gpu else self.op


@dataclass(frozen=True, slots=True)
class SmokeReport(Shown):
    """All verdicts, on the device named; `unprovable` says why nothing could be run, want of a GPU apart."""

    device: str | None
    results: tuple[SmokeResult, ...]
    unprovable: str | None = None
    troubles: tuple[str, ...] = ()
    """Third parties' entry points that did not load: their ops are not among the results."""

    @property
    def exit_code(self) -> int:
        """0 all passed or skipped for want of a GPU, 1 a smoke failed, 3 nothing could be proved."""
        if any(result.outcome in BAD_OUTCOMES for result in self.results):
            return 1
        return 3 if self.unprovable else 0

    def to_json(self) -> dict[str, Any]:
        """Return the report in JSON terms (`envdoctor.smoke/1`)."""
        return {
            "schema": SCHEMA,
            "device": self.device,
            "results": [_told(result) for result in self.results],
            **({"troubles": list(self.troubles)} if self.troubles else {}),
        }

    def count(self) -> Mapping[Outcome, int]:
        """How many verdicts of each kind there are, in the order of their first appearance."""
        counts: dict[Outcome, int] = {}
        for result in self.results:
            counts[result.outcome] = counts.get(result.outcome, 0) + 1
        return counts


def _told(result: SmokeResult) -> dict[str, Any]:
    """Return a verdict in JSON terms: every key, but a speed only where there is one."""
    told = {field.name: getattr(result, field.name) for field in fields(result)}
    speed = told.pop("speed")
    return told if speed is None else {**told, "speed": {"verdict": speed.verdict, **encode(speed)}}
