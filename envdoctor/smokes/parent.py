"""The run: plans lanes, waits on their workers, collects verdicts, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections.abc import Callable, Iterable, Sequence

from envdoctor.errors import InputError
from envdoctor.smokes.catalogue import (
    QUICK,
    OpEntry,
    builtin_entries,
    find_python,
    means,
    read_catalogue,
    select_ops,
)
from envdoctor.smokes.dcgm import read_diagnostic
from envdoctor.smokes.lane import Lane
from envdoctor.smokes.planning import gpu_expected, lanes
from envdoctor.smokes.scratch import environment, scratch_folder
from envdoctor.smokes.session import Session
from envdoctor.smokes.settled import Progress, Settled
from envdoctor.smokes.verdicts import SmokeReport, SmokeResult

DEFAULT_TIMEOUT_S = 60.0
LISTING_S = 10.0
"""What listing the ops may take at least: starting a Python on a busy machine, and entry points."""
DCGM_S = 180.0
"""What DCGM's diagnostic of the first level may take: seconds by its manual, more where its engine starts."""
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
    dcgm: bool = False,
    tell: Callable[[SmokeResult], object] = bool,
) -> SmokeReport:
    """Run the selected ops (default: the quick ones) in children of `python` and return their verdicts.

    `device` is `cpu`, a card's number, or None for all visible cards; `timeout_s` is an op's limit,
    `start_timeout_s` that of importing torch and starting CUDA (default: twice as long, at least 60).
    With `dcgm`, DCGM's own diagnostic is asked at the end, where it is installed. `tell` is called with each
    verdict as it comes. Speeds are measured and not judged: `expected.judge_speeds` does that.
    Raises InputError for a call that cannot be meant, Unavailable when the interpreter does not answer.
    """
    python = find_python(python)
    check_device(device)
    with_gpu = device != "cpu" and gpu_expected(dict(os.environ))
    workers = len(os.sched_getaffinity(0)) if with_gpu or device else 1
    with scratch_folder() as folder:
        env = environment(folder, os.environ)
        session = Session(
            python,
            env,
            device=device,
            timeout_s=timeout_s,
            start_timeout_s=start_timeout_s or max(2 * timeout_s, DEFAULT_TIMEOUT_S),
            build=build,
            gpu_expected=with_gpu,
        )
        with contextlib.closing(session):
            session.prestart(likely_workers(select, workers))
            catalogue = read_catalogue(python, max(timeout_s, LISTING_S), env)
            settled = Settled(select_ops(catalogue.ops, select), progress, tell)
            runnable = settled.settle_missing(catalogue, python, no_gpu=device is None and not with_gpu)
            _run_stages(runnable, session, settled, workers)
            if dcgm and with_gpu:
                settled.add(read_diagnostic(DCGM_S))
    unprovable = settled.unprovable() if device or with_gpu else None
    return SmokeReport(session.device_name, settled.in_order(), unprovable, catalogue.troubles)


def likely_workers(select: Sequence[str] | None, limit: int) -> int:
    """Return how many workers the built-in ops of the selection will want (third parties' are not known)."""
    known = [pattern for pattern in select or (QUICK,) if any(means(pattern, op) for op in builtin_entries())]
    chosen = select_ops(builtin_entries(), known) if known else ()
    return max(1, len(lanes([op for op in chosen if not op.last], limit)))


def check_device(device: str | None) -> None:
    """Raise InputError unless `device` is None, `cpu` or a card's number."""
    if device is not None and device != "cpu" and not device.isdecimal():
        raise InputError(f"--device {device}: cpu or the number of a card")


def _run_stages(ops: Sequence[OpEntry], session: Session, settled: Settled, workers: int) -> None:
    """Run side by side what bears company, then one by one what does not."""
    for stage, limit in (([op for op in ops if not op.last], workers), ([op for op in ops if op.last], 1)):
        _run_lanes([Lane(lane, session, settled.settle) for lane in lanes(stage, limit)], settled)
        session.close()


def _run_lanes(running: Sequence[Lane], settled: Settled) -> None:
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
