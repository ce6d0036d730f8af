"""Draws `diagnose.svg`: what a terminal shows for one pasted report.

python docs/images/make_diagnose.py
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.text import Text

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Examined
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.report import Format, Look
from envdoctor.report.rendering import render

ISSUE = """\
GPU: 2x Tesla T4, driver 535.161.08
- PyTorch version: 2.11.0
- transformers version: 5.17.0
- bitsandbytes version: 0.45.5
bf16: true
RuntimeError: CUDA error: The NVIDIA driver on your system is too old (found version 12020)
"""


def main() -> None:
    """Write the picture beside this file."""
    matrix = load_matrix()
    facts = parse_paste(ISSUE, "", matrix.lexicon)
    examined = Examined("issue.md", ("issue.md",))
    text = render(diagnose_facts(facts, matrix, examined=examined), Format.TEXT, Look(colour=True))
    console = Console(record=True, width=84, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$[/bold] envdoctor diagnose --from issue.md\n")
    console.print(Text.from_ansi(text))
    console.save_svg(str(Path(__file__).with_name("diagnose.svg")), title="envdoctor")


if __name__ == "__main__":
    main()
