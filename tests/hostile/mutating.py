"""How inputs are made hostile: values that no field expects, texts and bytes cut, doubled and moved."""

from __future__ import annotations

import json
import random
from typing import Any

from hostile_json import one_of_each_shape, places, with_key, with_value

RAW = {
    "@NAN@": "NaN",
    "@INF@": "-Infinity",
    "@OVER@": "1e999",
    "@LONG@": "9" * 5000,
    "@HUGE@": "1" + "0" * 4000,
}
"""What stands in a mutant's text in place of these strings, for Python's own JSON never writes it."""
SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**18, 0.5, 1e308, -0.0, *RAW),
    *(
        "",
        " ",
        "0",
        "-1",
        "1e5",
        "٣",
        "²",
        "１２",
        "9" * 5000,
        "NaN",
        "1.2.3",
        "torch",
        "a" * 250,
        "a" * 20_000,
    ),
    *(
        "\x00",
        "\n",
        "\r\n",
        "\u2028",
        "\ud800",
        "\x1b[31m",
        "\u202e",
        "../../x",
        "/dev/zero",
        "-",
        "--",
        "{}",
    ),
    *("x; touch PWNED", "$(touch PWNED)", "<script>", "]]>", "%s", "{0}", "::error::", "```", "|", "&amp;"),
)
CONTAINERS: tuple[Any, ...] = (
    {},
    [],
    [None],
    [[]],
    [{}],
    {"": 1},
    {"number": {}},
    {"value": None},
    ["a", 1, {}],
)


def deep(levels: int, kind: str) -> Any:
    """Nest lists or objects."""
    value: Any = 1
    for _ in range(levels):
        value = [value] if kind == "list" else {"value": value}
    return value


def other_value(rng: random.Random) -> Any:
    """Return a value that hardly any field expects."""
    kind = rng.random()
    if kind < 0.70:
        return rng.choice(SCALARS)
    return (
        rng.choice(CONTAINERS)
        if kind < 0.97
        else deep(rng.choice((5, 30, 200)), rng.choice(("list", "dict")))
    )


def mutated_json(value: Any, rng: random.Random) -> Any:
    """Return JSON with a few places changed, left out, doubled or renamed."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        known = one_of_each_shape(value) if rng.random() < 0.7 else list(places(value))
        at, inner = rng.choice(known)
        if not at:
            continue
        how = rng.random()
        if how < 0.6:
            value = with_value(value, at, other_value(rng))
        elif how < 0.75 and isinstance(at[-1], str):
            value = with_key(value, at, str(rng.choice(SCALARS)))
        elif how < 0.85:
            value = with_value(value, at, [inner, inner] if not isinstance(inner, list) else inner * 3)
        else:
            _, donor = rng.choice(known)
            value = with_value(value, at, donor)
    return value


def written(value: Any) -> str:
    """Return JSON as text, with the numbers that Python would not write."""
    text = json.dumps(value, indent=1)
    for word, number in RAW.items():
        text = text.replace(f'"{word}"', number)
    return text


def mutated_text(text: str, rng: random.Random) -> str:
    """Return a text with parts cut, doubled, moved, or replaced by what no writer would write."""
    for _ in range(rng.choice((1, 2, 4, 12))):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice((0, 1, 3, 20, 200)))
        part = rng.choice(
            (text[start:end] * 2, "", str(rng.choice(SCALARS)), "".join(reversed(text[start:end])))
        )
        text = text[:start] + part + text[end:]
        if len(text) > 200_000:
            break
    for word, number in RAW.items():
        text = text.replace(word, number)
    return text


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with some flipped, cut or doubled."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8)) if changed else 0):
        at = rng.randrange(len(changed))
        how = rng.random()
        if how < 0.6:
            changed[at] = rng.randrange(256)
        elif how < 0.8:
            del changed[at : at + rng.choice((1, 4, 100))]
        else:
            changed[at:at] = changed[at : at + rng.choice((1, 4, 100))]
        if not changed:
            return b""
    return bytes(changed)
