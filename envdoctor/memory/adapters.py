"""LoRA adapters: the tensors that peft adds to the targeted linears."""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.layout import layers
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape


@lru_cache(maxsize=1024)
def adapter_tensors(shape: ModelShape, s: Settings) -> tuple[tuple[int, int], ...]:
    """Elements of each adapter tensor and how often it occurs."""
    found: list[tuple[int, int]] = []
    for layer, count in layers(shape):
        for linear in layer.linears:
            if s.targeted(linear.role):
                found.append((s.rank * linear.inputs, count * linear.times))
                found.append((s.rank * linear.outputs, count * linear.times))
    return tuple(found)
