"""Plain values as YAML and JSON texts that every reader of those formats accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none"})


def to_json(values: Mapping[str, Any]) -> str:
    """Return an indented JSON text that ends with a newline."""
    return json.dumps(values, indent=2) + "\n"


def to_yaml(values: Mapping[str, Any], header: str = "") -> str:
    """Return a YAML text of mappings, lists and scalars, under a comment."""
    lines = [*(f"# {line}" for line in header.splitlines()), *_mapping(values, "")]
    return "\n".join(lines) + "\n"


def _mapping(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _mapping(value, indent + "  ")
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
            yield f"{indent}{key}:"
            for item in value:
                first, *rest = _mapping(item, indent + "    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {scalar(value)}"


def scalar(value: Any) -> str:
    """Return a scalar or a flat list as YAML writes it; strings that could be read otherwise are quoted."""
    if isinstance(value, str):
        plain = _BARE.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value)
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".") if value >= 1e-4 else f"{value:.1e}"
    return json.dumps(value)
