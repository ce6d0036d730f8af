"""Bytes of the weights as they lie on the card: plain, quantised with their block constants, upcast."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from envdoctor.memory.adapters import adapter_tensors, copied_tensors
from envdoctor.memory.extras import STORED_BYTES
from envdoctor.memory.layout import (
    Layer,
    block_linears,
    ending_linears,
    layers,
    learned,
    outer_tensors,
    tower_tensors,
)
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import rounded

BLOCK = 64  # weights that share one constant in bitsandbytes' NF4
CODEBOOK = (
    1 << 20
)  # of one matrix of AQLM's: 65,536 groups of eight in 16 bits; wheel:aqlm-1.1.7:aqlm/inference.py
NESTED = 256  # constants that share one in double quantisation


@lru_cache(maxsize=1024)
def weight_bytes(shape: ModelShape, s: Settings, double_quant: bool) -> int:
    """Bytes of all weights of one replica, split over tensor-parallel ranks."""
    total = sum(rounded(n * s.vector // s.tp) for n in outer_tensors(shape, tower=False))
    total += sum(rounded(size) for size in _tower_blocks(shape, s, double_quant))
    for layer, count in layers(shape):
        total += count * layer_bytes(layer, s, double_quant)
    return total


@lru_cache(maxsize=1024)
def layer_bytes(layer: Layer, s: Settings, double_quant: bool) -> int:
    """Bytes of one layer's weights."""
    total = sum(rounded(n * s.vector) for n in layer.vectors)
    stacked = 1 if s.quant == "fp8" else s.weight  # transformers quantises stacks of experts to FP8 alone
    total += sum(rounded(n * stacked // s.tp) for n in layer.stacks)
    for linear in layer.linears:
        weight = linear.weight // s.tp
        total += (
            quantised_bytes(weight, linear.outputs, s.quant, double_quant)
            if s.quant
            else rounded(weight * s.weight)
        )
        total += rounded(linear.outputs * s.vector) if linear.bias else 0
    return total


def quantised_bytes(weight: int, outputs: int, quant: str, double_quant: bool) -> int:
    """Bytes of a quantised matrix and its constants."""
    return sum(rounded(size) for size in quantised_blocks(weight, outputs, quant, double_quant))


def quantised_blocks(weight: int, outputs: int, quant: str, double_quant: bool) -> tuple[int, ...]:
    """Bytes of each tensor of a quantised matrix and its constants."""
    if quant == "int8":
        return weight, 4 * outputs
    if quant == "aqlm":
        return weight // 4, CODEBOOK, 2 * outputs
    if quant != "nf4":
        return (int(weight * STORED_BYTES[quant]),)
    blocks = -(-weight // BLOCK)
    if not double_quant:
        return weight // 2, 64, 4 * blocks
    return weight // 2, 64, blocks, 4 * -(-blocks // NESTED), 4, 4, 1024


def weight_blocks(shape: ModelShape, s: Settings, double_quant: bool) -> Iterator[int]:
    """Bytes of each tensor of the weights and of their constants, in the order of the model: towers first."""
    yield from _tower_blocks(shape, s, double_quant)
    first, *rest = outer_tensors(shape, tower=False)
    yield first * s.vector
    for layer, count in layers(shape):
        one = tuple(_layer_blocks(layer, s, double_quant))
        for _ in range(count):
            yield from one
    yield from (n * s.vector for n in rest)


def _tower_blocks(shape: ModelShape, s: Settings, double_quant: bool) -> Iterator[int]:
    """Bytes of each tensor of the towers: their linears are quantised like the decoder's while loading."""
    v = shape.vision
    if v is None or not s.quant:
        yield from (n * s.vector for n in tower_tensors(shape))
        return
    linears = (*block_linears(v) * v.layers, *ending_linears(v) * (1 + v.tapped))
    for linear in linears:
        yield from quantised_blocks(linear.weight, linear.outputs, s.quant, double_quant)
    yield max(0, shape.tower - sum(linear.weight for linear in linears)) * s.vector


def trained_tower(shape: ModelShape, s: Settings) -> tuple[int, ...]:
    """Elements of the tensors of a tower that full training steps: before all others."""
    return tower_tensors(shape) if s.trains and s.outer and s.tower_trains else ()


def trained_tensors(shape: ModelShape, s: Settings) -> list[tuple[int, int]]:
    """Elements of each trained tensor and their width, in the optimizer's order."""
    if not s.trains:
        inner = [(n, s.adapter) for n, count in adapter_tensors(shape, s) for _ in range(count)]
        copies = [(n, s.copied) for n, _ in copied_tensors(shape, s)]
        first = copies[: s.copies_table]
        return [*first, *inner, *copies[len(first) :]]
    left, found = s.lasting if s.active else shape.layers, list[tuple[int, int]]()
    for layer, count in reversed(layers(shape)):
        found = _layer_tensors(layer, s.of_layer("")) * min(left, count) + found
        left = max(0, left - count)
    if not s.outer:
        return found
    table, *rest = outer_tensors(learned(shape), False)
    begun = (*trained_tower(shape, s), table)
    return [*((n, s.vector) for n in begun), *found, *((n, s.vector) for n in rest)]


def _layer_tensors(layer: Layer, s: Settings) -> list[tuple[int, int]]:
    """Elements and width of each parameter tensor of a layer."""
    return [*((n, s.weight) for n in layer.matrices()), *((n, s.vector) for n in layer.vectors)]


def _layer_blocks(layer: Layer, s: Settings, double_quant: bool) -> Iterator[int]:
    for linear in layer.linears:
        for _ in range(linear.times):
            if s.quant:
                yield from quantised_blocks(linear.weight, linear.outputs, s.quant, double_quant)
            else:
                yield linear.weight * s.weight
            if linear.bias:
                yield linear.outputs * s.vector
    yield from (n * (1 if s.quant == "fp8" else s.weight) for n in layer.stacks)
    yield from (n * s.vector for n in layer.vectors)


def load_peak(shape: ModelShape, s: Settings, total: int) -> int:
    """Bytes at the height of loading: quantising holds one plain matrix beside what is there."""
    if not s.quant:
        return total
    largest = max(linear.weight for layer, _ in layers(shape) for linear in layer.linears)
    return total + rounded(largest * s.weight) * 2
