"""Strings drawn from a pattern, so that the rules which say what secrets look like can be planted."""

from __future__ import annotations

import pkgutil
import random
import re
import string
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from envdoctor import lazy_re

if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

_ALNUM = string.ascii_letters + string.digits
_CATEGORIES = {
    codes.CATEGORY_DIGIT: string.digits,
    codes.CATEGORY_WORD: _ALNUM + "_",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: _ALNUM,
    codes.CATEGORY_NOT_WORD: "-",
    codes.CATEGORY_NOT_DIGIT: string.ascii_letters,
}
_MORE = 20


def draw(pattern: str, r: random.Random) -> tuple[str, str]:
    """Return a string that `pattern` matches, and what its group `v` (or all of it) is."""
    tree = parser.parse(pattern)
    groups: dict[int, str] = {}
    text = _sequence(tree, r, groups)
    return text, groups.get(tree.state.groupdict.get("v", -1), text)


BESIDE = ("", " ", "\n", "x", "7", "-", ":", "/", '"', "(", ".", "=")


def drawn_of_package(package: str, count: int) -> Iterator[list[str]]:
    """Yield texts of each pattern that a package's modules hold: drawn, at times changed at an end."""
    for name in sorted(m.name for m in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")):
        held = sorted(vars(import_module(name)).items())
        for pattern in (one.pattern for _, one in held if isinstance(one, (re.Pattern, lazy_re.compile))):
            if isinstance(pattern, str):
                r = random.Random(pattern)
                yield [_beside(draw(pattern, r)[0], r) for _ in range(count)]


def _beside(text: str, r: random.Random) -> str:
    if r.random() < 0.3:
        text = r.choice((text[:-1], text[1:], text + text[-1:], text[: len(text) // 2], text.upper()))
    return f"at {r.choice(BESIDE)}{text}{r.choice(BESIDE)}" if r.random() < 0.7 else text


def _sequence(items: Any, r: random.Random, groups: dict[int, str]) -> str:
    return "".join(_one(code, argument, r, groups) for code, argument in items)


def _one(code: Any, argument: Any, r: random.Random, groups: dict[int, str]) -> str:
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.BRANCH:
        return _sequence(r.choice(argument[1]), r, groups)
    if code is codes.SUBPATTERN:
        number, _, _, inner = argument
        text = _sequence(inner, r, groups)
        if number:
            groups[number] = text
        return text
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, most, inner = argument
        most = min(int(most), least + _MORE)
        return "".join(_sequence(inner, r, groups) for _ in range(r.randint(least, most)))
    if code is codes.GROUPREF:
        return groups.get(argument, "")
    nothing = code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT)
    return "" if nothing else r.choice(_alphabet(code, argument))


def _alphabet(code: Any, argument: Any) -> str:
    if code is codes.ANY:
        return _ALNUM
    if code is codes.NOT_LITERAL:
        return _ALNUM.replace(chr(argument), "")
    items = argument if code is codes.IN else [(code, argument)]
    chosen = "".join(_members(inner, value) for inner, value in items)
    if items[0][0] is codes.NEGATE:
        return "".join(c for c in _ALNUM if c not in chosen) or "~"
    return chosen


def _members(code: Any, value: Any) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.RANGE:
        return "".join(map(chr, range(value[0], min(value[1], 126) + 1)))
    return _CATEGORIES[value] if code is codes.CATEGORY else ""
