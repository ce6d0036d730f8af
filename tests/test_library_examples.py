"""The example of each public function is run as it stands in its help, on files that it names."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from types import FunctionType

import pytest

import envdoctor
from envdoctor.errors import Unavailable

PASTE = "GPU: Tesla T4\nDriver Version: 580.82\ntorch==2.6.0\n"
FILES = ("report.txt", "nvidia-smi.txt", "train.log", "facts.txt")
FUNCTIONS = [name for name in envdoctor.__all__ if isinstance(getattr(envdoctor, name), FunctionType)]
HERE_NOT = {
    "smoke": "needs torch in the examined interpreter",
    "probe": "tells of this machine",
}
"""Examples that may end in Unavailable here, and why."""


def example(name: str) -> str:
    """Return the lines of a docstring that are code: the indented block in which the function is called."""
    lines = (inspect.getdoc(getattr(envdoctor, name)) or "").splitlines()
    at = next(i for i, line in enumerate(lines) if f"envdoctor.{name}(" in line)
    indent = re.match(" *", lines[at])[0]
    first, last = at, at
    while first > 0 and lines[first - 1].startswith(indent) and lines[first - 1].strip() and indent:
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].strip():
        last += 1
    return textwrap.dedent("\n".join(lines[first : last + 1]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_runs_as_it_stands(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        Path(file).write_text(PASTE, encoding="utf-8")
    Path("src").mkdir()
    Path("src/train.py").write_text("from transformers import AdamW\n", encoding="utf-8")
    names = {"envdoctor": envdoctor, "Path": Path}
    names["print"] = lambda *values: None
    try:
        exec(compile(example(name), f"{name}'s example", "exec"), names)
    except Unavailable:
        assert name in HERE_NOT
