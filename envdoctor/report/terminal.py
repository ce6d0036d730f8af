"""The same lines in colour: the only place that knows rich."""

from __future__ import annotations

import io

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
        text = Text.assemble(*((span.text, _STYLES[span.tone]) for span in line))
        text.rstrip()
        console.print(text, soft_wrap=True, highlight=False)
    return stream.getvalue()
