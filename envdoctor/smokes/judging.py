"""How far numbers are off, counted without torch: what is examined must not judge itself.

Runs under any Python from 3.8, in the examined interpreter.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Numbers(NamedTuple):
    """The values of a tensor in row-major order."""

    shape: tuple[int, ...]
    values: list[float]


def numbers_of(tensor: Any) -> Numbers:
    """Return a CPU tensor's values."""
    flat = tensor.reshape(-1).tolist() if hasattr(tensor, "reshape") else list(tensor.values)
    return Numbers(tuple(int(size) for size in tensor.shape), [float(value) for value in flat])


def off(got: Numbers, truth: Numbers, limits: tuple[float, float], index: int) -> tuple[float, str]:
    """Return the relative error of an output in the 2-norm, and what is wrong with it: empty for nothing.

    `limits` are the tolerance of the whole, and how many of it one element alone may be off, of its own size
    and of the root mean square together.
    """
    if got.shape != truth.shape:
        return math.nan, f"output {index} has shape {list(got.shape)}, not {list(truth.shape)}"
    strange = len(got.values) - sum(map(math.isfinite, got.values))
    if strange:
        return math.nan, f"output {index}: {strange} of {len(got.values)} values are NaN or infinite"
    tolerance, spread = limits
    size = math.dist(truth.values, [0.0] * len(truth.values))
    error = math.dist(got.values, truth.values) / (size or 1.0)
    if not error <= tolerance:
        return error, f"output {index} is off by {error:.3g}, tolerance {tolerance:.3g}"
    return error, _odd_element(got, truth, size, tolerance * spread, index)


def _odd_element(got: Numbers, truth: Numbers, size: float, limit: float, index: int) -> str:
    """Return which single element is off, though the whole is not."""
    count = len(truth.values)
    floor = limit * size / math.sqrt(count or 1)
    for place in range(count):
        value = truth.values[place]
        difference = abs(got.values[place] - value)
        if difference > floor + limit * abs(value):
            where = f"output {index}: element {place} of {count}"
            return f"{where} is off by {difference:.3g} where {value:.3g} belongs"
    return ""
