"""The verdicts of a run as they come in, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from envdoctor.smokes.catalogue import Catalogue, OpEntry
from envdoctor.smokes.lane import Lane
from envdoctor.smokes.planning import Request
from envdoctor.smokes.verdicts import SmokeResult

Progress = Callable[[int, int, str], None]


class Settled:
    """The verdicts so far."""

    def __init__(
        self, ops: Sequence[OpEntry], progress: Progress | None, tell: Callable[[SmokeResult], object]
    ) -> None:
        self._tell = tell
        self._order = {op.name: position for position, op in enumerate(ops)}
        self._ops = ops
        self._progress = progress
        self._verdicts: list[tuple[int, SmokeResult]] = []
        self._missing: set[str] = set()

    def settle(self, request: Request, result: SmokeResult) -> None:
        """Record a verdict."""
        self._verdicts.append((self._order[request.op.name], result))
        self._tell(result)

    def add(self, results: Iterable[SmokeResult]) -> None:
        """Record verdicts of others, which stand after all ops."""
        for result in results:
            self._verdicts.append((len(self._order), result))
            self._tell(result)

    def settle_missing(self, catalogue: Catalogue, python: str, *, no_gpu: bool) -> list[OpEntry]:
        """Skip what is not installed and return the ops that are left to run."""
        runnable = []
        for op in self._ops:
            missing = op.missing if catalogue.has_torch else "torch"
            if not missing:
                runnable.append(op)
                continue
            self._missing.add(missing)
            reason = f"{missing} is not installed in {python}"
            self._skip(op, f"no GPU: this machine shows none, and {reason}" if no_gpu else reason)
        return runnable

    def _skip(self, op: OpEntry, reason: str) -> None:
        self.settle(Request(op, ()), SmokeResult(op.name, "skipped", reason, tolerance=op.tolerance))

    def tell(self, running: Iterable[Lane]) -> None:
        """Show how far the run is."""
        if self._progress is not None:
            busy = [lane.worker for lane in running if lane.worker is not None]
            doing = ", ".join(f"{w.request.name if w.request else 'start'}: {w.phase}" for w in busy)
            self._progress(len(self._verdicts), max(len(self._ops), len(self._verdicts)), doing)

    def in_order(self) -> tuple[SmokeResult, ...]:
        """Return the verdicts in the catalogue's order, card by card."""
        return tuple(result for _, result in sorted(self._verdicts, key=lambda v: (v[0], v[1].gpu or 0)))

    def unprovable(self) -> str | None:
        """Return what was missing when nothing at all could be run for it."""
        if self._missing and all(result.outcome == "skipped" for _, result in self._verdicts):
            return f"nothing could be run: {', '.join(sorted(self._missing))} not installed"
        return None
