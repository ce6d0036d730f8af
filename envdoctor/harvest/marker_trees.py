"""Environment markers as small trees, decided ahead for an extra and evaluated for a target."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeAlias

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from envdoctor.specifiers import InvalidSpecifier, SpecifierSet

Tree: TypeAlias = bool | list[Any]
"""True, False, `["and", …]`, `["or", …]` or `[left, operator, right]` with one side a `$variable`."""


@lru_cache(65536)
def marker_tree(text: str, extra: str) -> Tree:
    """Return a marker's tree with its questions about extras answered for `extra` ("" for none)."""
    return _simplify(_parsed(text)._markers, extra)


@lru_cache(65536)
def _parsed(text: str) -> Marker:
    return Marker(text)


def named_extras(text: str) -> set[str]:
    """Return the extras that a marker compares with."""
    return {canonicalize_name(m[1]) for m in re.finditer(r"extra\s*[=!]=\s*['\"]([\w.-]*)['\"]", text)}


def _simplify(node: Any, extra: str) -> Tree:
    if isinstance(node, tuple):
        return _comparison(node, extra)
    alternatives: list[list[Tree]] = [[]]
    for item in node:
        if item == "or":
            alternatives.append([])
        elif item != "and":
            alternatives[-1].append(_simplify(item, extra))
    return _join("or", [_join("and", group) for group in alternatives])


def _join(word: str, parts: list[Tree]) -> Tree:
    settles = word == "or"
    if any(part is settles for part in parts):
        return settles
    open_parts = [part for part in parts if not isinstance(part, bool)]
    if not open_parts:
        return not settles
    return open_parts[0] if len(open_parts) == 1 else [word, *open_parts]


def _comparison(node: tuple[Any, Any, Any], extra: str) -> Tree:
    left, operator, right = node[0], node[1].value, node[2]
    sides = [_side(left), _side(right)]
    if "$extra" in sides:
        other = canonicalize_name(sides[1] if sides[0] == "$extra" else sides[0])
        return (other == extra) if operator == "==" else (other != extra)
    return [sides[0], operator, sides[1]]


def _side(side: Any) -> str:
    return f"${side.value}" if type(side).__name__ == "Variable" else str(side.value)


@lru_cache(4096)
def python_clauses(text: str) -> list[list[str]] | None:
    """Return a Requires-Python as `[operator, version]` clauses; None (it binds nobody) when malformed."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        text = re.sub(r"([<>]=?\s*[\d.]+?)\.\*", r"\1", text)
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            return None
    found = re.findall(r"(===|~=|==|!=|<=|>=|<|>)\s*([^,\s]+)", text)
    return [[operator, version] for operator, version in found]
