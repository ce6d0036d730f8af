"""One fact of a node in comparable form."""

from __future__ import annotations

from typing import TypeVar

from envdoctor.facts import Fact, Unknown
from envdoctor.facts.quantities import GIB
from envdoctor.values import NamedTuple

T = TypeVar("T")


class Value(NamedTuple):
    """A comparable value: its words, None for unknown with the reason; `size` where nearness is enough."""

    text: str | None
    reason: str = ""
    size: int | None = None


def told_value(fact: Fact[T]) -> Value:
    """Return a fact in its own words."""
    return Value(None, fact.reason) if isinstance(fact, Unknown) else Value(str(fact.value))


def size_value(fact: Fact[int]) -> Value:
    """Return a size in bytes as GiB."""
    if isinstance(fact, Unknown):
        return Value(None, fact.reason)
    return Value(f"{fact.value / GIB:.1f} GiB", size=fact.value)
