"""Words that stand in whatever a pattern matches: where none does, the pattern need not be tried."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from envdoctor.values import dataclass

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_SHORTEST = 3
_SPELLINGS = 48
"""So many spellings of one stretch are still listed."""
_LONG = 12
"""Letters from which on a needle is rare enough."""
_EACH = 1
"""What a further needle costs, in letters of the shortest."""
_NEWLINE = ord("\n")
"""Ends a line, and with it what a needle may hold."""
_ZERO_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")

Words = frozenset[str]
_NOTHING: Words = frozenset({""})


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What a part of a pattern matches: its spellings where these are few, and words that a match has."""

    spellings: Words | None
    needles: Words | None


@cache
def needles_of(pattern: str, wrapped: bool = False) -> tuple[str, ...]:
    """Return lower-case words of which every match of a pattern holds one; empty where none are telling.

    Of a pattern that runs over several lines they stand as near to its beginning as they can.
    """
    found = _of_sequence(list(_parser.parse(pattern)), wrapped)
    told = _better([found.needles, found.spellings])
    return tuple(sorted(told)) if told else ()


def _of_sequence(items: Sequence[tuple[Any, Any]], first: bool = False) -> _Stretch:
    candidates: list[Words | None] = []
    current = _NOTHING
    whole = True
    for operator, argument in items:
        part = _of_item(str(operator), argument, first)
        joined = _joined(current, part.spellings)
        if joined is None:
            whole = False
            candidates += [current, part.needles]
            current = part.spellings or _NOTHING
        else:
            current = joined
    candidates.append(current)
    told = [c for c in candidates if _is_telling(c)]
    best = told[0] if first and told else _better(told)
    return _Stretch(current if whole else None, best)


def _of_item(operator: str, argument: Any, first: bool) -> _Stretch:
    if operator == "LITERAL" and argument != _NEWLINE:
        return _Stretch(frozenset({chr(argument).lower()}), None)
    if operator in _ZERO_WIDTH:
        return _Stretch(_NOTHING, None)
    if operator == "IN":
        return _Stretch(_letters(argument), None)
    if operator == "SUBPATTERN":
        return _of_sequence(list(argument[-1]), first)
    if operator == "BRANCH":
        return _either([_of_sequence(list(way), first) for way in argument[1]])
    if operator in _REPEATS:
        least, most, what = argument
        return _repeated(least, most, what, first)
    return _Stretch(None, None)


def _letters(members: Sequence[tuple[Any, Any]]) -> Words | None:
    if not all(str(operator) == "LITERAL" and letter != _NEWLINE for operator, letter in members):
        return None
    return frozenset(chr(letter).lower() for _, letter in members)


def _either(ways: Sequence[_Stretch]) -> _Stretch:
    spelt = [way.spellings for way in ways]
    spellings = None if None in spelt else frozenset().union(*(s for s in spelt if s is not None))
    told = [_better([way.needles, way.spellings]) for way in ways]
    needles = None if None in told else frozenset().union(*(t for t in told if t is not None))
    return _Stretch(spellings if spellings and len(spellings) <= _SPELLINGS else None, needles)


def _repeated(least: int, most: Any, what: Any, first: bool) -> _Stretch:
    part = _of_sequence(list(what), first)
    if least == 0:
        once = most == 1 and part.spellings is not None
        return _Stretch((part.spellings or _NOTHING) | _NOTHING if once else None, None)
    if least == most == 1:
        return part
    return _Stretch(None, _better([part.needles, part.spellings]))


def _joined(before: Words, after: Words | None) -> Words | None:
    if after is None or len(before) * len(after) > _SPELLINGS:
        return None
    return frozenset(one + other for one in before for other in after)


def _is_telling(words: Words | None) -> bool:
    return words is not None and bool(words) and min(map(len, words)) >= _SHORTEST


def _better(candidates: Iterable[Words | None]) -> Words | None:
    """Return the words that are rarest in a text: long ones, and few."""
    told = [_fewest(words) for words in candidates if words is not None and _is_telling(words)]
    return max(told, key=lambda words: min(_LONG, *map(len, words)) - _EACH * len(words), default=None)


def _fewest(words: Words) -> Words:
    """Leave out what holds another of them."""
    return frozenset(one for one in words if not any(other != one and other in one for other in words))
