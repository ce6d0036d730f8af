"""Threads that read from an index: an interrupted command leaves at once and does not wait for them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Job = tuple["Future[Any]", Callable[[], Any]]


class Workers(Executor):
    """An executor of daemon threads; what they write is atomic, so that they may be cut off anywhere."""

    def __init__(self, count: int) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a call and return its future."""
        future: Future[T] = Future()
        self._jobs.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what is queued; with `cancel_futures` drop what has not begun."""
        while cancel_futures and not self._jobs.empty():
            if job := self._jobs.get():
                job[0].cancel()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the threads after success alone."""
        self.shutdown(wait=kind is None, cancel_futures=kind is not None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
