"""Where JSON can be attacked: every place in it, and the same value with another in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def places(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value inside `value` with its place, outermost first."""
    yield at, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places(inner, (*at, key))


def shape(at: Path) -> Path:
    """Return a place with its list indices and free keys left out: places of one shape are read alike."""
    free = {"distributions", "builds", "variables", "captured", "disk_free_bytes", "unknown"}
    return tuple("*" if isinstance(k, int) or (i and at[i - 1] in free) else k for i, k in enumerate(at))


def one_of_each_shape(value: Any) -> list[tuple[Path, Any]]:
    """Return one place for each shape."""
    found: dict[Path, tuple[Path, Any]] = {}
    for at, inner in places(value):
        found.setdefault(shape(at), (at, inner))
    return list(found.values())


def with_value(value: Any, at: Path, new: Any) -> Any:
    """Return `value` with `new` at a place; what lies elsewhere is shared with it."""
    if not at:
        return new
    changed = value.copy()
    changed[at[0]] = with_value(value[at[0]], at[1:], new)
    return changed


def with_key(value: Any, at: Path, new: str) -> Any:
    """Return `value` with another key at the end of a place."""
    holder = value
    for key in at[:-1]:
        holder = holder[key]
    return with_value(value, at[:-1], {new if k == at[-1] else k: v for k, v in holder.items()})
