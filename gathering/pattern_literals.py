"""The literals that a pattern cannot match without: what a search for many patterns looks for first."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as codes
    import sre_parse as parser

_MOST_HINTS = 24
_LEAST_PREFIX = 2
_LONGEST_LEAD = 128


class Literals(NamedTuple):
    """One of `hints` stands in every match, at most `lead` characters after its start.

    `fold`: the hints are in lower case and stand for any case. `fixed`: every match has the same length.
    """

    hints: tuple[str, ...]
    lead: int
    fold: bool
    fixed: bool


def find_literals(pattern: str) -> Literals:
    """Return the literals of a pattern; no hints when it has none that tell."""
    tree = parser.parse(pattern)
    least, most = tree.getwidth()
    items = list(_flat(tree, bool(tree.state.flags & re.IGNORECASE)))
    prefixes, fold = _prefixes(items)
    if all(len(p) >= _LEAST_PREFIX and not p.startswith("http") for p in prefixes):
        return Literals(tuple(sorted(prefixes)), 0, fold, least == most)
    run, lead, fold = _longest_run(items)
    hints = (run,) if len(run) >= _LEAST_PREFIX else ()
    return Literals(hints, min(lead, _LONGEST_LEAD), fold, least == most)


Item = tuple[Any, Any, bool]
"""A code, its argument, and whether case is ignored."""


def _flat(sequence: Any, fold: bool) -> list[Item]:
    """Return the items of a sequence, those of groups in it in their place, without edges."""
    found: list[Item] = []
    for code, argument in sequence:
        if code is codes.SUBPATTERN:
            _, added, removed, inner = argument
            inside = (fold or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
            found += _flat(inner, inside)
        elif code is not codes.AT:
            found.append((code, argument, fold))
    return found


def _prefixes(items: Sequence[Item]) -> tuple[set[str], bool]:
    texts, folded, going = {""}, False, True
    for code, argument, fold in items:
        choices, going = _choices(code, argument, fold)
        if not choices or len(texts) * len(choices) > _MOST_HINTS:
            break
        texts = {text + choice for text in texts for choice in choices}
        folded = folded or (fold and any(c.isalpha() for choice in choices for c in choice))
        if not going:
            break
    return ({text.lower() for text in texts} if folded else texts), folded


def _choices(code: Any, argument: Any, fold: bool) -> tuple[set[str], bool]:
    """Return the literal beginnings of one item, and whether they are the whole of it."""
    if code is codes.LITERAL:
        return {chr(argument)}, True
    if code is codes.IN and all(inner is codes.LITERAL for inner, _ in argument):
        return {chr(character) for _, character in argument}, True
    if code is codes.BRANCH:
        parts = [_prefixes(_flat(option, fold))[0] for option in argument[1]]
        whole = [all(c is codes.LITERAL for c, _, _ in _flat(option, fold)) for option in argument[1]]
        return set().union(*parts), all(whole)
    return set(), False


def _longest_run(items: Sequence[Item]) -> tuple[str, int, bool]:
    best, best_lead, best_fold = "", 0, False
    run, lead, width, folded = "", 0, 0, False
    for code, argument, fold in items:
        if code is codes.LITERAL:
            run, folded = run + chr(argument), folded or (fold and chr(argument).isalpha())
            width += 1
            if len(run) > len(best):
                best, best_lead, best_fold = run, lead, folded
        else:
            width += min(_width(code, argument), _LONGEST_LEAD)
            run, lead, folded = "", width, False
    return (best.lower() if best_fold else best), best_lead, best_fold


def _width(code: Any, argument: Any) -> int:
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        _, most, inner = argument
        return int(min(most, _LONGEST_LEAD)) * int(inner.getwidth()[1])
    if code is codes.BRANCH:
        return max(int(option.getwidth()[1]) for option in argument[1])
    return 1
