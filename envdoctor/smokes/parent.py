"""The run: plans lanes, waits on their workers, collects verdicts, and leaves nothing behind."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterable, Sequence

from envdoctor.errors import InputError
from envdoctor.smokes.catalogue import Catalogue, OpEntry, find_python, read_catalogue, select_ops
from envdoctor.smokes.lane import Lane
from envdoctor.smokes.planning import Request, gpu_expected, lanes
from envdoctor.smokes.scratch import environment, scratch_folder
from envdoctor.smokes.session import Session
from envdoctor.smokes.verdicts import Outcome, SmokeReport, SmokeResult

Progress = Callable[[int, int, str], None]
DEFAULT_TIMEOUT_S = 60.0
_TICK_S = 0.25


def run_smokes(
    python: str,
    select: tuple[str, ...] | None = None,
    device: str | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    start_timeout_s: float | None = None,
    build: bool = False,
    progress: Progress | None = None,
) -> SmokeReport:
    """Run the selected ops (default: the quick ones) in children of `python` and return their verdicts.

    `device` is `cpu`, a card's number, or None for all visible cards; `timeout_s` is an op's limit,
    `start_timeout_s` that of importing torch and starting CUDA (default: twice as long, at least 60).
    Raises InputError for a call that cannot be meant, Unavailable when the interpreter does not answer.
    """
    python = find_python(python)
    check_device(device)
    catalogue = read_catalogue(python, max(timeout_s, DEFAULT_TIMEOUT_S))
    ops = select_ops(catalogue.ops, select)
    expected = gpu_expected(dict(os.environ))
    settled = _Settled(ops, progress)
    runnable = settled.settle_missing(catalogue, python, no_gpu=device is None and not expected)
    device_name = "cpu" if device == "cpu" else None
    if runnable:
        with scratch_folder() as folder:
            session = Session(
                python,
                environment(folder, os.environ),
                device=device,
                timeout_s=timeout_s,
                start_timeout_s=start_timeout_s or max(2 * timeout_s, DEFAULT_TIMEOUT_S),
                build=build,
                gpu_expected=expected,
            )
            _run_stages(runnable, session, settled)
            device_name = session.device_name
    want_gpu = device is None and not expected
    return SmokeReport(device_name, settled.in_order(), None if want_gpu else settled.unprovable())


def check_device(device: str | None) -> None:
    """Raise InputError unless `device` is None, `cpu` or a card's number."""
    if device is not None and device != "cpu" and not device.isdecimal():
        raise InputError(f"--device {device}: cpu or the number of a card")


def _run_stages(ops: Sequence[OpEntry], session: Session, settled: _Settled) -> None:
    """Run side by side what bears company, then one by one what does not."""
    workers = len(os.sched_getaffinity(0))
    together = [op for op in ops if not op.last]
    _run_lanes([Lane(lane, session, settled.settle) for lane in lanes(together, workers)], settled)
    _run_lanes(
        [Lane(lane, session, settled.settle) for lane in lanes((o for o in ops if o.last), 1)], settled
    )


def _run_lanes(running: Sequence[Lane], settled: _Settled) -> None:
    try:
        while not all(lane.finished for lane in running):
            for lane in running:
                lane.advance()
            settled.tell(running)
            _wait(running)
    finally:
        for lane in running:
            lane.close()


def _wait(running: Iterable[Lane]) -> None:
    """Sleep until a worker says something or a deadline is near."""
    workers = [lane.worker for lane in running if lane.worker is not None]
    if not workers:
        return
    nearest = min(worker.deadline for worker in workers) - time.monotonic()
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            for stream in worker.open_streams:
                selector.register(stream, selectors.EVENT_READ)
        selector.select(max(0.0, min(_TICK_S, nearest)))


class _Settled:
    """The verdicts so far."""

    def __init__(self, ops: Sequence[OpEntry], progress: Progress | None) -> None:
        self._order = {op.name: position for position, op in enumerate(ops)}
        self._ops = ops
        self._progress = progress
        self._verdicts: list[tuple[int, SmokeResult]] = []
        self._missing: set[str] = set()

    def settle(self, request: Request, result: SmokeResult) -> None:
        """Record a verdict."""
        self._verdicts.append((self._order[request.op.name], result))

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
        skipped: Outcome = "skipped"
        self.settle(Request(op, ()), SmokeResult(op.name, skipped, reason, tolerance=op.tolerance))

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
