"""Compiles the matrix's rows when the wheel is built (an editable installation included)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileRows(BuildHookInterface[Any]):
    """Writes `matrices/releases/rows.jsonl`, which loads thirty times faster than the TOML files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the rows; a malformed row stops the build with its file and id."""
        sys.path.insert(0, self.root)
        try:
            from envdoctor.matrix.compile import write_rows
        finally:
            sys.path.remove(self.root)
        write_rows(Path(self.root) / "matrices")
