"""The same lines in colour: the only place that knows rich."""

from __future__ import annotations

import io
from itertools import groupby

from rich.console import Console
from rich.text import Text

from envdoctor.report.document import Document
from envdoctor.report.text import lay_out
from envdoctor.report.words import Tone

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
