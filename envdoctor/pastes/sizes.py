"""How two sizes of one weight differ, which tells why they do: a vocabulary, a rank, another model."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from envdoctor import lazy_re as re
from envdoctor.facts import APART

_NUMBER = re.compile(r"\d{1,12}")


def with_sizes(captured: Mapping[str, str]) -> Mapping[str, str]:
    """Add to a signature that captured what a file has (`held`) and a model (`built`) how they differ.

    `apart` is `empty`, `packed`, `dimensions`, `first`, `last` or `several`; `held_size` and `built_size`
    are the numbers at the first place that differs, `times` how often one goes into the other.
    """
    held, built = (_sizes(captured.get(name, "")) for name in ("held", "built"))
    if not held or not built or held == built:
        return captured
    if len(held) != len(built) or 0 in (*held, *built) or _is_packed(held, built):
        return {**captured, "apart": _otherwise(held, built)}
    places = [place for place, (one, other) in enumerate(zip(held, built, strict=True)) if one != other]
    one, other = held[places[0]], built[places[0]]
    apart = "several" if places[1:] else "last" if places[0] else "first"
    times, rest = divmod(max(one, other), min(one, other))
    whole = f"{times}" if not rest and apart != "several" else ""
    told = zip(APART, (apart, f"{one}", f"{other}", whole), strict=True)
    return {**captured, **{name: value for name, value in told if value}}


def _sizes(text: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(text)]


def _otherwise(held: list[int], built: list[int]) -> str:
    if 0 in (*held, *built):
        return "empty"
    return "packed" if _is_packed(held, built) else "dimensions"


def _is_packed(held: list[int], built: list[int]) -> bool:
    """True where one is a column of bytes that hold two numbers of the other each."""
    return any(one[-1] == 1 and prod(one) * 2 == prod(other) for one, other in ((held, built), (built, held)))
