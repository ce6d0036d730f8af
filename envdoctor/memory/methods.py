"""What is trained of a model: all of it, some layers, or what stands beside frozen weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from envdoctor.errors import InputError
from envdoctor.memory.shape import ModelShape
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """What a method trains.

    `layers` are those whose own weights are trained at a time: "all", the "last" or the "first", or such as
    are "drawn" by lot; `trained` is how many, unless told. `outer` tells that embedding, last norm and head
    are trained, `virtual` how many tokens are, unless told.
    LLaMA-Factory freezes all but the last layers; LISA draws layers anew every few steps, and the optimizer
    keeps the states of those it had; BAdam goes through the layers one by one, in fp32 copies of their own.
    wheel:llamafactory-0.9.5:llamafactory/model/adapter.py
    wheel:axolotl-0.19.0:axolotl/utils/callbacks/lisa.py
    wheel:badam-1.4:badam/block_optim.py wheel:peft-0.21.2
    """

    layers: str = ""
    outer: bool = False
    trained: int = 0
    virtual: int = 0


METHODS: Mapping[str, Method] = {
    "full": Method(layers="all", outer=True),
    "lora": Method(),
    "qlora": Method(),
    "freeze": Method(layers="last", trained=2),
    "lisa": Method(layers="drawn", outer=True),
    "badam": Method(layers="first", trained=1),
    "ia3": Method(),
    "prompt": Method(virtual=20),
    "prefix": Method(virtual=20),
}


@cache
def scaled_linears(model_type: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the linears whose result IA3 scales, and those whose input; raises InputError for a type of
    model that peft has none for."""
    from envdoctor.matrix import load_matrix, tables

    for row in load_matrix().rows(tables.ScaledRow):
        if model_type in row.model_types:
            return row.results, row.inputs
    raise InputError(f"--method ia3: peft has no targets of its own for {model_type}")


def has_kernels(shape: ModelShape) -> bool:
    """True for layers that axolotl's kernels for adapters are counted for: gated by SiLU, without experts."""
    return shape.gated and shape.activation == "silu" and shape.experts is None
