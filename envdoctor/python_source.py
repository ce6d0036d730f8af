"""Parses Python that others wrote: it is read, never run, and what its compiler would warn of is not told."""

from __future__ import annotations

import ast
import threading
import warnings
from functools import lru_cache

_ALONE = threading.Lock()
"""Python 3.11 counts the depth of trees for all threads together and fails where two parse at once."""


@lru_cache(maxsize=24)
def parse_python(source: str | bytes) -> ast.Module:
    """Return the syntax tree; raises SyntaxError for whatever is no Python of today, or too deep for it.

    The last few are kept, for one text is read for several things: nobody changes a tree.
    """
    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(f"{type(error).__name__}: {error}") from None
