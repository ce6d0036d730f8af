"""TOML by the standard library, and by `tomli` on the Python that has none of its own."""

from __future__ import annotations

import sys
from typing import Any


def parse_toml(text: str) -> dict[str, Any]:
    """Return a document's tables; raises ValueError for no TOML, RecursionError for a nesting too deep."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)
