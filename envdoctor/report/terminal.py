"""A diagnosis in colour: the only place that knows rich."""

from __future__ import annotations

import io
import shutil

from rich.console import Console
from rich.text import Text

from envdoctor.findings import Diagnosis
from envdoctor.report.layout import Line, lay_out

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold blue",
    "ok": "bold green",
    "strong": "bold",
    "doubt": "italic magenta",
    "dim": "bright_black",
    "command": "cyan",
    "": "",
}
_MAXIMUM_WIDTH = 110


def render_terminal(diagnosis: Diagnosis) -> str:
    """Return the report with colour codes, as wide as the terminal allows."""
    width = min(_MAXIMUM_WIDTH, max(60, shutil.get_terminal_size((100, 24)).columns))
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="standard",
        width=10_000,
        highlight=False,
        legacy_windows=False,
    )
    for line in lay_out(diagnosis, width):
        console.print(_text(line), soft_wrap=True)
    return stream.getvalue()


def _text(line: Line) -> Text:
    text = Text()
    for segment in line:
        text.append(segment.text, _STYLES[segment.style])
    text.rstrip()
    return text
