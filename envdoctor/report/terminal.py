"""The same lines in colour: the only place that knows rich."""

from __future__ import annotations

import io
from itertools import groupby
from typing import IO

from rich.console import Console
from rich.text import Text

from envdoctor.report.document import Document, Tone
from envdoctor.report.text import draw_text, lay_out

_STYLES: dict[Tone, str] = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold blue",
    "ok": "bold green",
    "strong": "bold",
    "doubt": "italic magenta",
    "dim": "bright_black",
    "code": "cyan",
    "": "",
}


def draw_colour(document: Document, width: int = 80) -> str:
    """Return the report with colour codes."""
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False
    )
    for line in lay_out(document, width):
        runs = ((tone, "".join(s.text for s in run)) for tone, run in groupby(line, lambda s: s.tone))
        text = Text.assemble(*((words, _STYLES[tone]) for tone, words in runs))
        text.rstrip()
        console.print(text, soft_wrap=True, highlight=False)
    return stream.getvalue()


class Screen:
    """A terminal's second screen, drawn over again and again; colour codes only with `colour`."""

    def __init__(self, stream: IO[str], colour: bool) -> None:
        self._stream, self._colour = stream, colour
        self._console = Console(file=stream, force_terminal=True, legacy_windows=False)
        self._console.set_alt_screen(True)
        self._console.show_cursor(False)

    def show(self, document: Document, columns: int, lines: int) -> None:
        """Draw the document's first lines, as many as there is room for."""
        text = draw_colour(document, columns) if self._colour else draw_text(document, columns)
        shown = text.splitlines()[:lines]
        self._stream.write("\x1b[H" + "\x1b[K\r\n".join(shown) + "\x1b[K\x1b[J")
        self._stream.flush()

    def close(self) -> None:
        """Show the first screen again."""
        self._console.show_cursor(True)
        self._console.set_alt_screen(False)
        self._stream.flush()
