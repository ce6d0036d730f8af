"""LoRA adapters: the tensors that peft adds to the targeted linears, and the modules that it copies."""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.layout import Linear, block_linears, ending_linears, layers
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import Experts, ModelShape


@lru_cache(maxsize=1024)
def adapter_tensors(shape: ModelShape, s: Settings) -> tuple[tuple[int, int], ...]:
    """Elements of each adapter tensor and how often it occurs."""
    found: list[tuple[int, int]] = []
    if s.before:
        return ((s.before * shape.hidden, 1),)
    if s.prefix:
        return ((s.prefix * 2 * shape.layers * shape.kv_heads * shape.head_dim, 1),)
    for layer, count in layers(shape):
        for linear in layer.linears:
            if linear.role in (*s.scaled, *s.fed):
                size = linear.outputs if linear.role in s.scaled else linear.inputs
                found.append((size, count * linear.times))
            if s.targeted(linear.role):
                found.append((s.rank * linear.inputs, count * linear.times))
                found.append((s.rank * linear.outputs, count * linear.times))
                if s.dora:
                    found.append((linear.outputs, count * linear.times))
        if layer.stacks and shape.experts and adapts_experts(shape, s):
            found += [(n, count) for n in expert_factors(shape, shape.experts, s.rank)]
    for linear, count in tower_linears(shape, s):
        found += [(s.rank * linear.inputs, count), (s.rank * linear.outputs, count)]
    return tuple(found)


def tower_linears(shape: ModelShape, s: Settings) -> list[tuple[Linear, int]]:
    """The matrices of a tower that adapters sit on, and how often each occurs."""
    v = shape.vision
    if v is None or s.tower_frozen or not s.rank:
        return []
    named = s._replace(targets=in_towers(s.targets))
    both = ((block_linears(v), v.layers), (ending_linears(v), 1 + v.tapped))
    return [(linear, count) for group, count in both for linear in group if named.targeted(linear.role)]


def in_towers(targets: str) -> str:
    """A set of adapters' targets by the names that towers' code gives its matrices."""
    return {"attn": "q,k,v,o", "qv": "q,v"}.get(targets, targets)


def copied_tensors(shape: ModelShape, s: Settings) -> tuple[tuple[int, int], ...]:
    """Elements of each tensor of the modules that peft copies to train them whole; the embedding first."""
    size = shape.vocab * shape.hidden
    head = (size, *((shape.vocab,) if shape.head_bias else ()))
    found = ((size,) if s.copies_table else ()) + (head if s.copies_head else ())
    return tuple((n, 1) for n in found)


def adapts_experts(shape: ModelShape, s: Settings) -> bool:
    """True when peft finds the stacks of experts: plain parameters of a module that it knows."""
    return shape.expert_adapters and s.targeted("experts")


def expert_factors(shape: ModelShape, experts: Experts, rank: int) -> tuple[int, ...]:
    """Elements of the factors that peft puts on both stacks of experts and on the router.

    Each expert has factors of its own, of twice the rank where gate and up are one stack.
    """
    first, second = 2 * rank * experts.count, rank * experts.count
    return (
        first * shape.hidden, first * 2 * experts.width, second * experts.width, second * shape.hidden,
        rank * shape.hidden, rank * experts.count,
    )  # fmt: skip
