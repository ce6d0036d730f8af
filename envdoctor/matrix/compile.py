"""`python -m envdoctor.matrix.compile`: check the rows of `matrices/*.toml`, and write what loads fast."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder, read_files
from envdoctor.files import write_folder
from envdoctor.matrix.load import COMPILED, CONDITIONS, HEADS, digest_of, heads_of
from envdoctor.matrix.references import check_references, known_names
from envdoctor.matrix.sources import parse_sources, tables_of


def compile_rows(folder: Path) -> str:
    """Return a matrix folder's rows; raises Unavailable for a wrong one.

    What is known of them, the heads, then one line a kind, then one line a condition row.
    """
    files = read_files(folder)
    rows = parse_sources(files)
    check_references(rows, known_names(rows, folder))
    tables, date = tables_of(rows)
    conditions = tables.pop(CONDITIONS, [])
    heads = [*heads_of(conditions)]
    kinds = {kind: _dumped(told) for kind, told in {HEADS: heads, **tables}.items()}
    lines = [*map(_dumped, conditions)]
    head = {
        "digest": digest_of(files),
        "sizes": {name: len(content) for name, content in files.items()},
        "date": date,
        "kinds": {kind: len(line.encode()) for kind, line in kinds.items()},
        "conditions": [len(line.encode()) for line in lines],
        "standing": [place for place, head in enumerate(heads) if head.stands],
    }
    return "".join((_dumped(head), *kinds.values(), *lines))


def _dumped(line: object) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def write_rows(folder: Path) -> None:
    """Write the compiled rows of a matrix folder beside its generated release facts."""
    write_folder(folder / "releases", {COMPILED: compile_rows(folder)})


def main() -> str | None:
    """Compile the rows in force; return None, or which row is wrong."""
    try:
        write_rows(Path(find_folder()))
    except Unavailable as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
