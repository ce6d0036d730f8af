"""Runs the patterns that rows hold: on long texts by google-re2 where installed, which is linear.

The patterns in the code are the modules' own; that each costs linear time is what `tests/hostile` shows.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection
from functools import cache
from typing import Any

LONGEST = 8192
"""Characters of a text that a row's pattern may look at."""
SHORT = 512
"""Up to here a pattern is run by `re`: no machine's own line is longer, and importing RE2 takes 20 ms."""


class RowPattern:
    """A pattern of the subset that `re` and RE2 read alike; `\\w`, `\\d`, `\\s` and `\\b` speak of ASCII."""

    __slots__ = ("_case", "_plain", "_text")

    def __init__(self, text: str, case: bool) -> None:
        self._text = text
        self._case = case
        self._plain = re.compile(text, re.ASCII | (re.RegexFlag(0) if case else re.IGNORECASE))

    def search(self, text: str) -> re.Match[str] | None:
        """Return where the pattern first stands in the first 8,192 characters of `text`."""
        return self._run("search", text[:LONGEST])

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return the match of the whole of `text`; None for one of more than 8,192 characters."""
        return self._run("fullmatch", text) if len(text) <= LONGEST else None

    def _run(self, method: str, text: str) -> re.Match[str] | None:
        engine = _linear(self._text, self._case) if len(text) > SHORT else None
        if engine is not None:
            try:
                found: re.Match[str] | None = getattr(engine, method)(text)
                return found
            except UnicodeEncodeError:  # Half a surrogate pair is no UTF-8.
                pass
        found = getattr(self._plain, method)(text)
        return found


@cache
def row_pattern(text: str, case: bool = False) -> RowPattern:
    """Return the compiled pattern of a row, with upper and lower `case` or alike; raises re.error."""
    return RowPattern(text, case)


@cache
def _linear(text: str, case: bool) -> Any:
    """Return the pattern compiled by RE2, or None where that is not installed or refuses it."""
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.case_sensitive, options.log_errors = case, False
    try:
        return re2.compile(text, options)
    except re2.error:
        return None


def glob_matches(text: str, glob: str) -> bool:
    """True when the whole text fits a glob; one without wildcards, as nearly all are, is only compared."""
    return fnmatch.fnmatchcase(text, glob) if _is_wild(glob) else text == glob


def fitting(texts: Collection[str], glob: str) -> set[str]:
    """Return those of many texts that fit a glob."""
    return {one for one in texts if fnmatch.fnmatchcase(one, glob)} if _is_wild(glob) else {glob} & set(texts)


def _is_wild(glob: str) -> bool:
    return "*" in glob or "?" in glob or "[" in glob
