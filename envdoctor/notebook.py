"""The door for notebooks: `%load_ext envdoctor`, `%envdoctor`, and values shown as reports."""

from __future__ import annotations

import html
import shlex
import sys
from typing import TYPE_CHECKING, Any

from envdoctor.report import Format, draw
from envdoctor.report.document import Document, Table

if TYPE_CHECKING:
    from envdoctor.findings import Diagnosis
    from envdoctor.solve.answer import PinSet

LINE_PX, LEAST_PX, MOST_PX = 22, 160, 640


def register(shell: Any) -> None:
    """Give an IPython shell the magics `%envdoctor` and `%%envdoctor`."""
    shell.register_magic_function(magic, magic_kind="line_cell", magic_name="envdoctor")


def magic(line: str, cell: str | None = None) -> Diagnosis | None:
    """Diagnose this kernel's environment, or the cell's text; with words, run that command and print.

    `%envdoctor`, `%envdoctor --gpu T4`, `%envdoctor memory --model qwen2.5-7b`; `%%envdoctor` over a paste.
    """
    from envdoctor import diagnose, diagnose_facts, parse

    if cell is not None:
        return diagnose_facts(parse(cell))
    words = shlex.split(line)
    if not words:
        return diagnose(python=sys.executable)
    run_command(words)
    return None


def run_command(words: list[str]) -> None:
    """Run a command as a terminal would, on this kernel's environment where it does not name another."""
    from envdoctor.cli import COMMANDS, main

    if words[0] not in COMMANDS:
        words = ["diagnose", *words]
    if words[0] == "diagnose" and not {"--python", "--from", "--each", "--help"} & set(words):
        words = [*words, "--python", sys.executable]
    try:
        main(words)
    except SystemExit:  # --help ends what it is asked in
        pass


def html_of(value: Any) -> str:
    """Return a value's report inside a frame of its own: its style touches nothing of the notebook."""
    page = _page(value)
    lines = page.count("<tr") + page.count("<p") + page.count("<li") + page.count("\n")
    height = min(MOST_PX, max(LEAST_PX, LINE_PX * lines))
    frame = f"width:100%;height:{height}px;border:0;background:#fff"
    return f'<iframe sandbox srcdoc="{html.escape(page)}" style="{frame}"></iframe>'


def _page(value: Any) -> str:
    match type(value).__name__:
        case "Diagnosis":
            from envdoctor.report import rendering as room
        case "WhyNot":
            from envdoctor.solve import report as room  # type: ignore[no-redef]
        case "Prediction":
            from envdoctor.memory.report import render

            return render(value, None, Format.HTML)
        case "Profile":
            from envdoctor.profile import report as room  # type: ignore[no-redef]
        case "SmokeReport":
            from envdoctor.smokes import report as room  # type: ignore[no-redef]
        case "Upgrade":
            from envdoctor.upgrading import documents as room  # type: ignore[no-redef]
        case _:
            return draw(_pins(value), Format.HTML)
    return room.render(value, Format.HTML)


def _pins(pins: PinSet) -> Document:
    from envdoctor.solve.report import conflict_document

    if pins.status in ("conflict", "unknown"):
        return conflict_document(pins)
    sets = pins.sets or (pins,)
    tables = tuple(
        Table(
            ("package", "version", "because"),
            tuple((p.name, p.label, "; ".join(p.because)) for p in one.pins),
        )
        for one in sets
    )
    return Document(pins.status, "ok" if pins.status == "solved" else "warning", tables)
