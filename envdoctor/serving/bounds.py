"""An answer cut to a size that an assistant can take in, with what was cut counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

LIMIT = 32_000
"""Characters of an answer's JSON: about 8,000 tokens."""
STEPS = ((200, 4000), (100, 2000), (50, 1000), (20, 600), (10, 400), (5, 300), (3, 200), (1, 100), (1, 40))
"""Items of a list or an object, and characters of a text; the first step that fits is taken."""
DEPTH = 12
PLACES = 20
"""How many places that were cut are named."""


def bounded(answer: Mapping[str, Any], limit: int = LIMIT) -> dict[str, Any]:
    """Return the answer with at most `limit` characters of JSON.

    Lists lose their last items, texts their ends; `left_out` then counts what is gone, by its place.
    """
    for items, characters in STEPS:
        gone: Counter[str] = Counter()
        shown: dict[str, Any] = {
            key: _cut(value, items, characters, key, gone) for key, value in answer.items()
        }
        if gone:
            shown["left_out"] = dict(gone.most_common(PLACES))
        if len(json.dumps(shown)) <= limit:
            return shown
    return {"left_out": {"everything": 1}}


def _cut(value: Any, items: int, characters: int, place: str, gone: Counter[str]) -> Any:
    if isinstance(value, str):
        over = len(value) - characters
        if over > 0:
            gone[place] += over
        return value if over <= 0 else f"{value[:characters]}… ({over} more characters)"
    if not isinstance(value, (list, tuple, Mapping)):
        return value
    over = len(value) - items
    if over > 0:
        gone[place] += over
    if place.count(".") + place.count("[]") >= DEPTH:
        gone[place] += len(value)
        return {} if isinstance(value, Mapping) else []
    if isinstance(value, Mapping):
        kept = list(value.items())[:items]
        return {
            str(key)[:200]: _cut(one, items, characters, f"{place}.{key}"[:200], gone) for key, one in kept
        }
    return [_cut(one, items, characters, f"{place}[]", gone) for one in value[:items]]
