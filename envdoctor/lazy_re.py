"""`re` for patterns that stand at the top of a module: each is compiled when it is first asked something.

    from envdoctor import lazy_re as re

A module's patterns take longer to compile than all the rest of it to load, and most answers need few of them.
"""

from __future__ import annotations

import re as _re
from re import (
    ASCII,
    DOTALL,
    IGNORECASE,
    MULTILINE,
    VERBOSE,
    I,
    M,
    Match,
    Pattern,
    RegexFlag,
    error,
    escape,
    findall,
    finditer,
    fullmatch,
    match,
    search,
    split,
    sub,
)
from typing import TYPE_CHECKING, Any

__all__ = [
    "ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "VERBOSE", "I", "M", "Match", "Pattern", "RegexFlag",
    "compile", "error", "escape", "findall", "finditer", "fullmatch", "match", "search", "split", "sub",
]  # fmt: skip

if TYPE_CHECKING:
    from re import compile as compile
else:

    class compile:
        """A pattern to come. Its methods become its own attributes once it is compiled."""

        def __init__(self, pattern: Any, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            made = _re.compile(self.pattern, self._flags)
            vars(self).update((n, getattr(made, n)) for n in dir(made) if not n.startswith("_"))
            return getattr(made, name)
