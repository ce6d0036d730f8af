"""Where a command's data goes: standard output or `--output`, written whole or not at all."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from envdoctor.cli.parsing import columns
from envdoctor.errors import Unavailable
from envdoctor.report import PLAIN, Look, told

if TYPE_CHECKING:
    from envdoctor.report.document import Document

_NARROWEST, _WIDEST = 40, 100


def write(args: argparse.Namespace, text: str) -> None:
    """Write `text` (with a final newline) to `args.output` or standard output.

    Raises Unavailable when it cannot be written.
    """
    text = text if text.endswith("\n") else text + "\n"
    _stop_waiting(args)
    if not args.output:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            drop_output()
            raise Unavailable(f"standard output: cannot be written: {error.strerror}") from None
        return
    from pathlib import Path

    from envdoctor.files import replace_file

    replace_file(Path(args.output), text)


def tell(args: argparse.Namespace, terms: Callable[[], Any], document: Callable[[], Document]) -> None:
    """Write an answer: its JSON terms, or its document in the format that was asked for."""
    write(args, told(args.format, look_of(args), document, terms))


def note(args: argparse.Namespace, text: str) -> None:
    """Say something to the person on standard error, unless `--quiet`."""
    if not args.quiet:
        _stop_waiting(args)
        complain(text)


def _stop_waiting(args: argparse.Namespace) -> None:
    """Wipe the sign of life before anything is said on the same terminal."""
    if waiting := getattr(args, "waiting", None):
        waiting.end()


def complain(text: str) -> None:
    """Say something on standard error without the credentials of URLs; where nobody listens, it is lost."""
    if "@" in text:
        from envdoctor.probes.urls import hide_credentials

        text = hide_credentials(text)
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Progress:
    """One line on a terminal's standard error that is drawn over; nothing anywhere else."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.drawn = not args.quiet and sys.stderr.isatty()

    def step(self, done: int, total: int, what: str) -> None:
        """Draw how far it is; a `total` of 0 is not known."""
        counted = f"{'#' * (20 * done // total):<20} {done}/{total} " if total else ""
        self._draw(f"{counted}{what}"[: columns() - 1])

    def end(self) -> None:
        """Wipe the line."""
        self._draw("")

    def _draw(self, text: str) -> None:
        if self.drawn:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"\r\x1b[K{text}")
                sys.stderr.flush()


def look_of(args: argparse.Namespace) -> Look:
    """Return how to draw text: 80 columns and plain, or as the terminal that it goes to allows."""
    if args.output:
        return PLAIN
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, max(_NARROWEST, columns())) if terminal else PLAIN.width
    dumb = args.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Look(width, not dumb and bool(os.environ.get("FORCE_COLOR") or terminal))


def open_closed_streams() -> None:
    """Put something in the place of standard streams that are closed, lest the next file opened takes it.

    What is written to a closed standard output fails; to standard error, it is lost.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            handle = os.open(os.devnull, mode)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8")


def drop_output() -> None:
    """Let what is still to be written to standard output be lost, for nothing more can be."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def never_fail_to_encode() -> None:
    """Let the standard streams show what their encoding lacks: our marks by likenesses, the rest escaped."""
    codecs.register_error(_LIKENESS, _alike)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LIKENESS)


_LIKENESS = "envdoctor.likeness"
_LIKENESSES = str.maketrans(
    {"✗": "x", "✓": "+", "·": "-", "•": "*", "└": "`", "─": "-", "█": "#", "→": "->", "×": "x", "…": "...",
     "≥": ">=", "≤": "<=", "‖": "|", "–": "-", "\xa0": " "}
)  # fmt: skip


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    told = error.object[error.start : error.end].translate(_LIKENESSES)
    return told.encode("ascii", "backslashreplace").decode(), error.end
