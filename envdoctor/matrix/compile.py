"""`python -m envdoctor.matrix.compile`: write the rows of `matrices/*.toml` as one JSON that loads fast."""

from __future__ import annotations

import json
from pathlib import Path

from envdoctor.files import write_folder
from envdoctor.matrix.load import COMPILED, digest_of, find_folder, parse_sources, read_sources


def compile_rows(folder: Path) -> str:
    """Return the text of the compiled rows of a matrix folder; raises Unavailable for a malformed row."""
    sources = read_sources(folder)
    data = {"digest": digest_of(sources), "tables": parse_sources(sources)}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"


def write_rows(folder: Path) -> None:
    """Write the compiled rows of a matrix folder beside its generated release facts."""
    write_folder(folder / "releases", {COMPILED: compile_rows(folder)})


if __name__ == "__main__":
    write_rows(find_folder())
