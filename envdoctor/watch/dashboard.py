"""`--dashboard`: a run on a full screen; what the command says goes to a file meanwhile, its end is shown."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import IO

from envdoctor.report.document import Block, Code, Document, Row, Rows, Section, Span, Text, Tone
from envdoctor.report.terminal import Screen
from envdoctor.watch.moment import Alarm, Expectation, Header, Moment, seconds_a_step
from envdoctor.watch.words import amount, duration

_BLOCKS = " ▁▂▃▄▅▆▇█"
_LABEL, _INDENT = 6, 4
_LEAST_CURVE = 8
_SHOWN_ALARMS = 5
_LEAST_LOG = 3


class Dashboard:
    """A terminal on which the frames of a run are shown while it has the foreground."""

    def __init__(self, terminal: int, colour: bool) -> None:
        self._fd = terminal
        self._stream: IO[str] = os.fdopen(os.dup(terminal), "w", encoding="utf-8", errors="replace")
        self._colour = colour
        self._screen: Screen | None = None
        self._lock = threading.Lock()

    def show(self, frame: Callable[[int, int], Document]) -> None:
        """Show a frame of the terminal's size; in the background, or where it is gone, nothing."""
        with self._lock, contextlib.suppress(OSError):
            if os.tcgetpgrp(self._fd) != os.getpgrp():
                return
            self._screen = self._screen or Screen(self._stream, self._colour)
            size = os.get_terminal_size(self._fd)
            self._screen.show(frame(size.columns, size.lines), size.columns, size.lines)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Leave the terminal to others meanwhile; the next frame takes it again."""
        with self._lock:
            self._leave()
            yield

    def _leave(self) -> None:
        with contextlib.suppress(OSError):
            if self._screen is not None:
                self._screen.close()
        self._screen = None

    def close(self) -> None:
        """Give the terminal back as it was."""
        with self._lock, contextlib.suppress(OSError):
            self._leave()
            self._stream.close()


def frame(
    header: Header,
    moments: Sequence[Moment],
    alarms: Sequence[Alarm],
    expected: Expectation | None,
    tail: Sequence[str],
    columns: int,
    lines: int,
) -> Document:
    """Return what is shown of a run on a terminal of that size."""
    last = moments[-1] if moments else Moment(0.0)
    tone: Tone = "warning" if alarms else "ok"
    blocks: list[Block] = [Rows(tuple(_rows(header, last, moments, columns)))]
    blocks.append(Code("\n".join(_curves(moments, expected, columns))))
    told = alarms[-_SHOWN_ALARMS:]
    if told:
        blocks.append(Section("Said", tuple(Text(_alarm(a)) for a in told)))
    used = 9 + len(last.cards) + 2 * len(told)
    room = max(_LEAST_LOG, lines - used)
    if tail:
        blocks.append(Section("Log", (Code("\n".join(line[: columns - 3] for line in tail[-room:])),)))
    return Document(_title(last), tone, tuple(blocks))


def _title(last: Moment) -> str:
    steps = "" if last.step is None else f", step {last.step}{f' of {last.of}' if last.of else ''}"
    return f"{last.phase or 'starting'}{steps}, {duration(last.t)}"


def _rows(header: Header, last: Moment, moments: Sequence[Moment], columns: int) -> list[Row]:
    rows = [Row("command", " ".join(header.argv)[: max(20, columns - 10)])]
    told = [f"loss {last.loss:.4g}" if last.loss is not None else "", pace(moments)]
    if any(told):
        rows.append(Row("training", ", ".join(filter(None, told))))
    rows += [Row("not read", text) for text in header.unread[:2]]
    return rows


def pace(moments: Sequence[Moment]) -> str:
    """Return how fast steps come and how long the rest will take, in words; empty where that is not known."""
    seconds = seconds_a_step(moments[-300:])
    last = next((m for m in reversed(moments) if m.step is not None), None)
    if seconds is None or last is None or not last.step:
        return ""
    left = f", {duration(seconds * (last.of - last.step))} to go" if last.of else ""
    return f"{seconds:.2g} s a step{left}"


def _curves(moments: Sequence[Moment], expected: Expectation | None, columns: int) -> list[str]:
    """Return a line for the host and for each card: its curve, what it holds, of what, and the prediction."""
    if not moments:
        return ["no reading yet"]
    last, found = moments[-1], []
    if last.host is not None and last.room is not None:
        shares = [
            m.host / max(1, m.host + m.room) for m in moments if m.host is not None and m.room is not None
        ]
        found.append(_line("host", shares, columns, last.host, last.host + last.room, ""))
    for index, card in enumerate(last.cards):
        shares = [m.cards[index].top / max(1, card.total) for m in moments if index < len(m.cards)]
        more = f", predicted {amount(expected.longest)}" if expected and card.ours != 0 else ""
        util = f", {card.util} %" if card.util is not None else ""
        found.append(_line(f"GPU {index}", shares, columns, card.used, card.total, f"{util}{more}"))
    return found or ["nothing is read"]


def _line(label: str, shares: Sequence[float], columns: int, used: int, total: int, more: str) -> str:
    words = f" {amount(used)} of {amount(total)}{more}"
    room = max(_LEAST_CURVE, columns - _LABEL - _INDENT - len(words))
    return f"{label:<{_LABEL}}|{curve(shares, room)}|{words}"


def curve(shares: Sequence[float], width: int) -> str:
    """Return shares of a whole as blocks, the largest of each part, at most `width` of them."""
    count = min(width, len(shares))
    bounds = [len(shares) * i // count for i in range(count + 1)] if count else [0]
    tops = [max(shares[a:b]) for a, b in pairwise(bounds)]
    return "".join(_BLOCKS[min(8, max(0, round(share * 8)))] for share in tops).ljust(width)


def _alarm(alarm: Alarm) -> tuple[Span, ...]:
    return (Span(f"{duration(alarm.t)}  "), Span(alarm.kind, "warning"), Span(f"  {alarm.text}"))
