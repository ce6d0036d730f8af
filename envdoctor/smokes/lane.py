"""A lane: ops that share a warm worker, one after another, and the rules of blame among them.

A verdict against an op counts only where the op was the first of its worker. Any other failure, crash or
timeout may be owed to those before it: the op is run again, alone, in a fresh worker.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from envdoctor.facts import Speed
from envdoctor.facts.codec import FactsFormatError, decode
from envdoctor.smokes.channel import Worker
from envdoctor.smokes.planning import Request, requests
from envdoctor.smokes.session import Session
from envdoctor.smokes.verdicts import Outcome, SmokeResult

Settle = Callable[[Request, SmokeResult], None]
_START_TRIES = 2  # a worker that is killed while it starts may have been killed by chance
_FIGURES = ("max_rel_error", "first_ms", "repeat_ms")


class Lane:
    """The state of one lane; `advance` moves it on, `finished` says when there is nothing left."""

    def __init__(self, ops: Sequence[Any], session: Session, settle: Settle) -> None:
        self._ops = tuple(ops)
        self._session = session
        self._settle = settle
        self._pending: deque[Request] | None = None
        self._deaths_at_start = 0
        self._suspicion: str | None = None
        self._unimportable: dict[str, str] = {}
        self.worker: Worker | None = None
        self.finished = False

    def advance(self) -> None:
        """Start a worker, hear it, judge it when it fell silent or ran late."""
        if self.finished:
            return
        if self._session.unusable and self._pending is None:
            return self._settle_all(*self._session.unusable)
        worker = self.worker = self.worker or self._session.take_worker()
        messages, over = worker.receive()
        for message in messages:
            self._hear(worker, message)
            if self.worker is not worker:
                return
        if over:
            self._bury(worker)
        elif time.monotonic() > worker.deadline:
            self._give_up(worker)

    def _hear(self, worker: Worker, message: dict[str, Any]) -> None:
        event = message["event"]
        if event == "phase":
            worker.phase = str(message["phase"])
        elif event == "unready":
            self._settle_all(message["outcome"], message["reason"])
        elif event == "ready":
            self._become_ready(worker, message)
        elif event == "result" and worker.request is not None:
            self._judge(worker, worker.request, message)

    def _become_ready(self, worker: Worker, message: dict[str, Any]) -> None:
        fault = self._session.learn_devices(message["devices"], message.get("reason"))
        if fault:
            return self._settle_all(*fault)
        worker.ready = True
        if self._pending is None:
            self._pending = deque(requests(self._ops, self._session.cards))
        self._next(worker)

    def _next(self, worker: Worker) -> None:
        """Give the worker its next op, or end the lane."""
        while self._pending:
            request = self._pending[0]
            blocked = next((need for need in request.op.needs if need in self._unimportable), None)
            if blocked is None:
                return worker.send(request, self._session.timeout_s)
            self._record(self._pending.popleft(), "failed", self._unimportable[blocked])
        self.close()

    def _judge(self, worker: Worker, request: Request, message: dict[str, Any]) -> None:
        """Take a worker's verdict; a bad one stands when the op was alone."""
        outcome = message["outcome"]
        bad = outcome not in ("passed", "skipped")
        if bad and worker.served:
            return self._retry_alone(worker, message["reason"])
        if message.get("unimportable"):
            self._unimportable[message["unimportable"]] = message["reason"]
        figures = {key: message[key] for key in _FIGURES if key in message}
        try:
            figures["speed"] = decode(Speed, message["speed"], ("speed",)) if "speed" in message else None
        except FactsFormatError as error:
            outcome, message["reason"], bad = "failed", f"its figure cannot be read: {error}", True
        tail = worker.tail() if bad else ""
        self._take(request, outcome, message["reason"], stderr_tail=tail, **figures)
        worker.served += 1
        worker.request = None
        if bad:
            self._replace(worker)
        else:
            self._next(worker)

    def _bury(self, worker: Worker) -> None:
        """Judge a worker that can say no more."""
        how, signal = worker.end()
        reason = f"{how}, at: {worker.phase}"
        if worker.request is None or not worker.ready:
            self._deaths_at_start += 1
            if self._deaths_at_start < _START_TRIES:
                self.worker = None
                return
            return self._settle_all("crashed", reason, signal)
        self._blame(worker, worker.request, "crashed", reason, signal)

    def _give_up(self, worker: Worker) -> None:
        """Judge a worker that ran late."""
        session, busy = self._session, worker.request
        limit = session.timeout_s * busy.op.patience if busy else session.start_timeout_s
        reason = f"not done after {limit:g} s, at: {worker.phase}"
        if worker.request is None:
            return self._settle_all("timeout", reason)
        worker.close()
        self._blame(worker, worker.request, "timeout", reason, None)

    def _blame(
        self, worker: Worker, request: Request, outcome: Outcome, reason: str, signal: str | None
    ) -> None:
        if worker.served:
            return self._retry_alone(worker, reason)
        self._take(request, outcome, reason, signal=signal, stderr_tail=worker.tail())
        self._replace(worker)

    def _retry_alone(self, worker: Worker, reason: str) -> None:
        """Leave the op first in line for a fresh worker."""
        self._suspicion = reason
        worker.close()
        self.worker = None

    def _replace(self, worker: Worker) -> None:
        worker.close()
        self.worker = None
        if not self._pending:
            self.close()

    def _take(self, request: Request, outcome: Outcome, reason: str | None, **fields: Any) -> None:
        """Record the verdict of the op at the head of the line."""
        assert self._pending is not None
        self._pending.popleft()
        if outcome == "passed" and self._suspicion:
            reason = f"passed alone; among others it failed: {self._suspicion}"
        self._suspicion = None
        self._record(request, outcome, reason, **fields)

    def _record(self, request: Request, outcome: Outcome, reason: str | None, **fields: Any) -> None:
        tolerance = None if request.op.unit else request.op.tolerance
        result = SmokeResult(request.name, outcome, reason, tolerance=tolerance, gpu=request.gpu)
        self._settle(request, replace(result, **fields))

    def _settle_all(self, outcome: Outcome, reason: str, signal: str | None = None) -> None:
        """Give every op left in the lane the verdict that met the worker before any of them could run."""
        if self._pending is None:
            self._session.unusable = (outcome, reason, signal)
            self._pending = deque(requests(self._ops, ()))
        tail = self.worker.tail() if self.worker and outcome != "skipped" else ""
        for request in self._pending:
            self._record(request, outcome, reason, signal=signal, stderr_tail=tail)
        self._pending.clear()
        self.close()

    def close(self) -> None:
        """End the lane and its worker."""
        if self.worker is not None:
            self.worker.close()
        self.worker = None
        self.finished = True
