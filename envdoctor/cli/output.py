"""Where a command's data goes: standard output or `--output`, written whole or not at all."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import shutil
import sys
from pathlib import Path

from envdoctor.files import replace_file
from envdoctor.report import PLAIN, Look

_NARROWEST, _WIDEST = 40, 100


def write(args: argparse.Namespace, text: str) -> None:
    """Write `text` (with a final newline) to `args.output` or standard output.

    Raises Unavailable when the file cannot be written.
    """
    text = text if text.endswith("\n") else text + "\n"
    if not args.output:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    replace_file(Path(args.output), text)


def note(args: argparse.Namespace, text: str) -> None:
    """Say something to the person on standard error, unless `--quiet`."""
    if not args.quiet:
        print(text, file=sys.stderr)


class Progress:
    """One line on a terminal's standard error that is drawn over; nothing anywhere else."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._drawn = not args.quiet and sys.stderr.isatty()

    def step(self, done: int, total: int, what: str) -> None:
        """Draw how far it is; a `total` of 0 is not known."""
        counted = f"{'#' * (20 * done // total):<20} {done}/{total} " if total else ""
        self._draw(f"{counted}{what}"[: shutil.get_terminal_size().columns - 1])

    def end(self) -> None:
        """Wipe the line."""
        self._draw("")

    def _draw(self, text: str) -> None:
        if self._drawn:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def look_of(args: argparse.Namespace) -> Look:
    """Return how to draw text: 80 columns and plain, or as the terminal that it goes to allows."""
    if args.output:
        return PLAIN
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size().columns)) if terminal else PLAIN.width
    dumb = args.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Look(width, not dumb and bool(os.environ.get("FORCE_COLOR") or terminal))


def never_fail_to_encode() -> None:
    """Let the standard streams show what their encoding lacks: our marks by likenesses, the rest escaped."""
    codecs.register_error(_LIKENESS, _alike)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LIKENESS)


_LIKENESS = "envdoctor.likeness"
_LIKENESSES = str.maketrans(
    {"✗": "x", "✓": "+", "·": "-", "•": "*", "└": "`", "─": "-", "█": "#", "→": ">", "×": "x", "…": "...",
     "≥": ">=", "≤": "<=", "‖": "|", "–": "-", "\xa0": " "}
)  # fmt: skip


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    told = error.object[error.start : error.end].translate(_LIKENESSES)
    return told.encode("ascii", "backslashreplace").decode(), error.end
