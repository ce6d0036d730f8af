"""Deciding compiled marker trees and Requires-Python clauses for a target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_VERSIONED = frozenset({"$python_version", "$python_full_version", "$implementation_version"})
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def decide(tree: Any, environment: Mapping[str, str]) -> bool:
    """Return whether a marker tree holds in a marker environment (PEP 508 names)."""
    if isinstance(tree, bool):
        return tree
    if tree[0] == "and" and isinstance(tree[1], list):
        return all(decide(part, environment) for part in tree[1:])
    if tree[0] == "or" and isinstance(tree[1], list):
        return any(decide(part, environment) for part in tree[1:])
    return _compare(tree[0], tree[1], tree[2], environment)


def _compare(left: str, operator: str, right: str, environment: Mapping[str, str]) -> bool:
    versioned = left in _VERSIONED or right in _VERSIONED
    if right.startswith("$") and not left.startswith("$") and operator in _FLIPPED:
        left, right, operator = right, left, _FLIPPED[operator]
    a, b = _value(left, environment), _value(right, environment)
    if operator in ("in", "not in"):
        found = a in re.split(r"[\s,|]+", b) if versioned else a in b
        return found is (operator == "in")
    if versioned:
        if not left.startswith("$"):
            a, b = b, a
        return clause_holds(operator, b, python_tuple(a))
    return _compare_texts(a, operator, b)


def _compare_texts(a: str, operator: str, b: str) -> bool:
    if operator in ("==", "==="):
        return a == b
    if operator == "!=":
        return a != b
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}.get(operator, False)


def _value(side: str, environment: Mapping[str, str]) -> str:
    return environment.get(side[1:], "") if side.startswith("$") else side


def python_tuple(text: str) -> tuple[int, ...]:
    """Return the numbers of a Python version, `3.11.7` as (3, 11, 7)."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[abr+]", text)[0]))


def clauses_hold(clauses: Sequence[Sequence[str]], python: tuple[int, ...]) -> bool:
    """Return whether a Python version satisfies every clause of a Requires-Python."""
    return all(clause_holds(operator, bound, python) for operator, bound in clauses)


def some_release_meets(clauses: Sequence[Sequence[str]], python: tuple[int, ...]) -> bool:
    """True when a Python meets a Requires-Python; one told without its last number, when some release may."""
    told = [python, (*python, 99)] if len(python) < 3 else [python]
    return any(clauses_hold(clauses, one) for one in told)


def clause_holds(operator: str, bound: str, value: tuple[int, ...]) -> bool:
    """Return whether one comparison of release numbers holds."""
    wildcard = bound.endswith(".*")
    wanted = python_tuple(bound)
    if operator == "~=":
        return (_padded(value) >= _padded(wanted)) and _cut(value, len(wanted) - 1) == wanted[:-1]
    if operator in ("==", "===", "!="):
        equal = _cut(value, len(wanted)) == wanted if wildcard else _padded(value) == _padded(wanted)
        return equal is (operator != "!=")
    a, b = _padded(value), _padded(wanted)
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[operator]


def _padded(value: tuple[int, ...]) -> tuple[int, ...]:
    return (*value, 0, 0, 0, 0)[:4]


def _cut(value: tuple[int, ...], length: int) -> tuple[int, ...]:
    return _padded(value)[:length]
