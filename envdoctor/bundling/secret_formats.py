"""What issued secrets look like, wherever they stand: rows of `secrets.toml` and gitleaks' published rules.

A format is tried only where a literal of it stands, once at each place: the cost is that of finding literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from envdoctor.bundling.secret_values import is_drawn, is_mixed
from envdoctor.bundling.sought import Hints, Searched
from envdoctor.bundling.spans import Span, left_of, occurrences
from envdoctor.matrix import load_matrix, tables

# What may stand before a token though it ends in a letter or digit: the tail of a spelled-out escape.
_ESCAPE_TAIL = re.compile(r"(?:\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9a-fA-F]{4}|\[[0-9;]{1,8}m)$")
_ESCAPE_REACH = 10
_TOKEN_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@cache
def load_formats() -> tuple[tables.SecretFormatRow, ...]:
    """Return every known format, the curated ones first; raises Unavailable without a matrix."""
    matrix = load_matrix()
    rules = matrix.generated("secret-rules")
    origin: dict[str, Any] = {"source": rules.get("source", ""), "checked_on": rules.get("generated", "")}
    published = (
        {**rule, "kind": rule["id"], "hints": tuple(rule["hints"]), "basis": "upstream source", **origin}
        for rule in rules.get("formats", ())
    )
    curated = matrix.rows(tables.SecretFormatRow)
    return (*curated, *(tables.SecretFormatRow(**rule) for rule in published))


@cache
def _hints() -> tuple[Hints, Mapping[str, tuple[tuple[str, int], ...]]]:
    """Return every hint, and for each how it is sought (empty: in any case) and for which formats."""
    sought: dict[str, tuple[tuple[str, int], ...]] = {}
    for number, entry in enumerate(load_formats()):
        for hint in entry.hints:
            exact = "" if entry.fold else hint
            sought[hint.lower()] = (*sought.get(hint.lower(), ()), (exact, number))
    return Hints(sought), sought


def find_formats(
    searched: Searched, joins: frozenset[int] | None = None
) -> Iterator[tuple[tables.SecretFormatRow, Span]]:
    """Find what has an issuer's format, and say which.

    `joins` are the places where a line break was taken out of the text: there a token may begin, and none is
    followed further than its format says.
    """
    hints, sought = _hints()
    found: list[tuple[int, list[int]]] = []
    for hint in searched.held(hints):
        for exact, number in sought[hint]:
            text = searched.text if exact else searched.lowered
            lead = load_formats()[number].lead
            found.append((number, [] if lead else list(occurrences(text, exact or hint))))
    for number, places in sorted(found):
        entry = load_formats()[number]
        for span in _find_one(searched, entry, places, joins):
            yield entry, span


def _find_one(
    searched: Searched, entry: tables.SecretFormatRow, places: list[int], joins: frozenset[int] | None
) -> Iterator[Span]:
    done, text = 0, searched.text
    for match in _matches(searched, entry, places):
        if match.start() < done or not _may_begin(text, match.start(), joins):
            continue
        start, end = match.span("v") if "v" in match.re.groupindex else match.span()
        if not _counts(entry, text[start:end]):
            continue
        done = end
        yield Span(start, _end_of_run(text, end, entry.follow, joins), entry.kind)


def _counts(entry: tables.SecretFormatRow, value: str) -> bool:
    if entry.mixed and not is_mixed(value.partition("_")[2] or value):
        return False
    return not entry.drawn or is_drawn(value)


def _end_of_run(text: str, end: int, follow: str, joins: frozenset[int] | None) -> int:
    while end < len(text) and (text[end] in _TOKEN_CHARACTERS or text[end] in follow):
        if joins and end in joins:
            return end
        end += 1
    while text[end : end + 1] == "=":
        end += 1
    return end


def _matches(searched: Searched, entry: tables.SecretFormatRow, places: list[int]) -> Iterator[re.Match[str]]:
    pattern = _compiled(entry.pattern)
    if entry.lead:
        for start, end in searched.long_words:
            yield from pattern.finditer(searched.text, start, end)
    for place in places:
        if match := pattern.match(searched.text, place):
            yield match


def _may_begin(text: str, start: int, joins: frozenset[int] | None) -> bool:
    before = text[start - 1 : start]
    if not (before.isascii() and before.isalnum() and text[start].isalnum()):
        return True
    if joins and start in joins:
        return True
    return bool(_ESCAPE_TAIL.search(left_of(text, start, _ESCAPE_REACH)))
