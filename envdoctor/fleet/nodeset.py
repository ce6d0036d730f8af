"""Node sets: many names written as `node[001-063]` and read back, as Slurm and ClusterShell write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

MAX_NODES = 1_000_000
MAX_DIGITS = 18
"""Digits of a number that is counted with; a longer one is part of the name."""
_NUMBER = re.compile(r"([0-9]+)")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._:-]")
_RANGE = re.compile(rf"([0-9]{{1,{MAX_DIGITS}}})(?:-([0-9]{{1,{MAX_DIGITS}}}))?")
_PART = re.compile(r"\[([^\[\]]*)\]")
Dimensions = tuple[str, ...]


def node_name(text: str) -> str:
    """Return a text as a node's name: what would be read as a set's syntax becomes `_`."""
    return _NOT_IN_A_NAME.sub("_", text.strip()) or "_"


def natural_key(name: str) -> tuple[tuple[int, int, str, str], ...]:
    """Return a key that sorts `node2` before `node10`; numbers may be of any length."""
    return tuple(_sortable(part) for part in _NUMBER.split(name) if part)


def _sortable(part: str) -> tuple[int, int, str, str]:
    if not (part.isascii() and part.isdecimal()):
        return 0, 0, part, ""
    digits = part.lstrip("0")
    return 1, len(digits), digits, part


def fold(names: Iterable[str]) -> str:
    """Return a set of names in the fewest characters that its numbers allow: `node[001-063,065]`."""
    shapes: dict[tuple[str, ...], list[Dimensions]] = {}
    for name in set(names):
        pieces = _NUMBER.split(name)
        if any(len(number) > MAX_DIGITS for number in pieces[1::2]):
            pieces = [name]
        shapes.setdefault(tuple(pieces[::2]), []).append(tuple(pieces[1::2]))
    folded = [text for texts, numbers in shapes.items() for text in _fold_shape(texts, numbers)]
    return ",".join(sorted(folded, key=natural_key))


def _fold_shape(texts: tuple[str, ...], numbers: list[Dimensions]) -> Iterator[str]:
    """Fold the last number of names of one shape first, then the one before it, and so on."""
    for position in reversed(range(len(texts) - 1)):
        numbers = list(_fold_dimension(numbers, position))
    for dimensions in numbers:
        yield texts[0] + "".join(n + text for n, text in zip(dimensions, texts[1:], strict=True))


def _fold_dimension(numbers: list[Dimensions], position: int) -> Iterator[Dimensions]:
    alike: dict[tuple[Dimensions, Dimensions], list[str]] = {}
    for dimensions in numbers:
        rest = (dimensions[:position], dimensions[position + 1 :])
        alike.setdefault(rest, []).append(dimensions[position])
    for (before, after), values in alike.items():
        for text in _ranges(values):
            yield (*before, text, *after)


def _ranges(values: list[str]) -> Iterator[str]:
    """Yield one text for the numbers without padding and one for each width of padded ones."""
    padded = {len(v) for v in values if v[0] == "0" and len(v) > 1}
    widths: dict[int, list[int]] = {}
    for value in values:
        widths.setdefault(len(value) if len(value) in padded else 0, []).append(int(value))
    for width, found in widths.items():
        if len(found) == 1:
            yield f"{found[0]:0{width}d}"
        else:
            yield f"[{','.join(_runs(sorted(found), width))}]"


def _runs(numbers: Sequence[int], width: int) -> Iterator[str]:
    first = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"
        if number is not None:
            first = last = number


def expand(text: str) -> list[str]:
    """Return the names of a folded set in order; raises ValueError for what is none or is too large."""
    names: dict[str, None] = {}
    for pattern in _comma_parts(text):
        for name in _expand_pattern(pattern.strip()):
            names[name] = None
            if len(names) > MAX_NODES:
                raise ValueError(f"more than {MAX_NODES} nodes")
    return sorted(names, key=natural_key)


def _comma_parts(text: str) -> Iterator[str]:
    """Yield what stands between the commas that are in no bracket."""
    held: list[str] = []
    for part in text.split(","):
        held.append(part)
        opened, closed = part.rfind("["), part.rfind("]")
        if opened <= closed and (len(held) == 1 or closed >= 0):
            yield ",".join(held)
            held = []
    if held:
        yield ",".join(held)


def _expand_pattern(pattern: str) -> Iterator[str]:
    pieces = _PART.split(pattern)
    if not pattern or any("[" in piece or "]" in piece for piece in pieces[::2]):
        raise ValueError(f"not a node set: {pattern[:60]!r}")
    choices = [_expand_ranges(piece, pattern) for piece in pieces[1::2]]
    for chosen in product(*choices):
        yield pieces[0] + "".join(n + text for n, text in zip(chosen, pieces[2::2], strict=True))


def _expand_ranges(text: str, pattern: str) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or int(match[2] or match[1]) - int(match[1]) > MAX_NODES:
            raise ValueError(f"not a node set: {pattern[:60]!r}")
        width = len(match[1]) if match[1].startswith("0") else 0
        found += [f"{n:0{width}d}" for n in range(int(match[1]), int(match[2] or match[1]) + 1)]
    return found


def in_order(nodes: Iterable[str]) -> tuple[str, ...]:
    """Return nodes as people count them."""
    return tuple(sorted(nodes, key=natural_key))
