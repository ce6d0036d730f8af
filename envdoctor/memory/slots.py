"""What vLLM sets aside for adapters when it is to serve them: room for so many of the largest rank."""

from __future__ import annotations

from envdoctor.memory.constants import Constants
from envdoctor.memory.layout import Layer, layers
from envdoctor.memory.run import DTYPES, ServingRun

SPLIT_INSIDE = ("o", "down")
"""Matrices whose inputs cards split; of all others they split what comes out."""
WHOLE = ("q_a", "kv_a")
"""Matrices that lie whole on each card."""
WITH_TABLES = ("llama", "mistral", "mixtral", "granite", "minicpm", "exaone")
"""Model types whose embedding and head take adapters too.
https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/model_executor/models/llama.py
"""
WITH_TABLES_LATER = ("qwen3", "qwen3_moe")


def slot_bytes(run: ServingRun, constants: Constants) -> int:
    """Return the bytes of all slots on one card; none where no adapters are served.

    https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/lora/layers/base_linear.py
    https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/lora/layers/fused_moe.py
    """
    if not run.lora_slots:
        return 0
    each = sum(count * _linears(layer, run.tp) for layer, count in layers(run.shape))
    if constants.vllm_expert_slots:
        each += _experts(run)
    numbers = each // run.pp * run.lora_rank + _tables(run, constants)
    return numbers * run.lora_slots * DTYPES[run.dtype]


def _linears(layer: Layer, tp: int) -> int:
    """Width in and out of a layer's matrices as a card holds their factors, of which one is never split."""
    found = 0
    for linear in layer.linears:
        inside, outside = linear.inputs, linear.outputs
        if linear.role in SPLIT_INSIDE:
            inside //= tp
        elif linear.role not in WHOLE:
            outside //= tp
        found += (inside + outside) * linear.times
    return found


def _experts(run: ServingRun) -> int:
    """The same of all routed experts: each has factors of its own for gate, up and down."""
    shape, experts = run.shape, run.shape.experts
    if experts is None:
        return 0
    sparse = sum(count for layer, count in layers(shape) if layer.stacks)
    return sparse * experts.count * 3 * (shape.hidden + experts.width // run.tp)


def _tables(run: ServingRun, constants: Constants) -> int:
    """Numbers of a slot for embedding and head, whole on each card, and for tokens that an adapter adds."""
    shape = run.shape
    later = WITH_TABLES_LATER if constants.vllm_table_slots else ()
    if shape.model_type not in (*WITH_TABLES, *later):
        return 0
    added = constants.vllm_added_tokens
    return run.lora_rank * 2 * (shape.vocab + added + shape.hidden) + 2 * added * shape.hidden
