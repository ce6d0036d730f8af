"""A sign of life on a terminal for what takes over a second and tells no progress of its own."""

from __future__ import annotations

import argparse
import sys
import threading
import time

from envdoctor.cli.output import Progress

DOING = {
    "diagnose": "reading and judging",
    "pin": "looking up and solving",
    "why-not": "looking up and solving",
    "upgrade": "looking up and solving",
    "memory": "predicting",
    "profile": "searching",
    "bundle": "reading and redacting",
}
"""What is said of the commands that tell nothing themselves."""
FIRST_S, NEXT_S = 1.0, 0.5
MARKS = "|/-\\"


class Waiting:
    """Draws what is under way on a terminal's standard error, from the first second on until `end`."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._line, self._what = Progress(args), DOING.get(args.command, "")
        self._ended = threading.Event()
        shown = self._what and self._line.drawn
        self._thread = threading.Thread(target=self._draw, daemon=True) if shown else None

    def __enter__(self) -> Waiting:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Wipe the line; nothing is drawn afterwards."""
        if self._thread and not self._ended.is_set():
            self._ended.set()
            self._thread.join()
            self._line.end()

    def _draw(self) -> None:
        started, wait, number = time.monotonic(), FIRST_S, 0
        while not self._ended.wait(wait) and not sys.is_finalizing():
            mark = MARKS[number % len(MARKS)]
            self._line.step(0, 0, f"{mark} {self._what} ... {time.monotonic() - started:.0f} s")
            wait, number = NEXT_S, number + 1
