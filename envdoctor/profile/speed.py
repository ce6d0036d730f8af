"""How fast a setting is beside another: a simple cost model of one optimizer step, never a measurement.

Arithmetic, the bytes that dequantising and the loss move, launches, and what the cards exchange are added
up as if nothing overlapped. Only the order of settings and rough ratios mean anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from envdoctor.facts import ComputeCapability
from envdoctor.memory import ModelShape
from envdoctor.memory.layout import active_parameters, attention_linears, mlp_linears, parameters
from envdoctor.profile.workload import Choice

BUSY = 0.5
"""The share of a card's throughput that large matrix products reach in training."""
HALF_BUSY_TOKENS = 256
"""Tokens of a micro batch at which products reach half of that."""
LAUNCH_S = 0.0004
"""Seconds of launches for one layer, there and back."""
HOST_LINK, HOST_MEMORY = 10e9, 40e9
"""Bytes a second between card and host, and of an optimizer that steps in host memory."""
DEQUANTISED = 12.0
"""Bytes that rebuilding a 4-bit weight costs a pass, as if at full bandwidth: QLoRA of a 7B at batch 1 then
takes about 1.4 times as long as LoRA, as published (magazine.sebastianraschka.com, practical tips)."""
ENGINE_SHARE = 0.02
"""What DeepSpeed and FSDP add to a step; plain data parallelism wins where nothing needs sharding."""


@dataclass(frozen=True, slots=True)
class CardSpeed:
    """FLOP/s in 16 bit, bytes/s of the card's memory, bytes/s to another card of the host."""

    flops: float
    bandwidth: float
    link: float


def card_speed(rows: Iterable[Mapping[str, Any]], capability: ComputeCapability | None) -> CardSpeed:
    """Return the figures of the nearest capability that is not higher, or of an unknown card."""
    chosen: tuple[ComputeCapability, Mapping[str, Any]] | None = None
    unknown: Mapping[str, Any] = {"tflops": 150, "bandwidth": 900, "link": 12}
    for row in rows:
        if "compute_capability" not in row:
            unknown = row
            continue
        known = ComputeCapability.parse(row["compute_capability"])
        if capability is not None and known <= capability and (chosen is None or known > chosen[0]):
            chosen = (known, row)
    row = chosen[1] if chosen else unknown
    return CardSpeed(row["tflops"] * 1e12, row["bandwidth"] * 1e9, row["link"] * 1e9)


@lru_cache(maxsize=256)
def adapter_parameters(shape: ModelShape, rank: int) -> int:
    """Return the parameters of adapters on all linears of a dense layer."""
    linears = (*attention_linears(shape), *mlp_linears(shape, shape.ffn))
    return shape.layers * sum(rank * (linear.inputs + linear.outputs) for linear in linears)


def trained_parameters(shape: ModelShape, choice: Choice) -> int:
    """Return how many parameters the optimizer steps."""
    return parameters(shape) if choice.method == "full" else adapter_parameters(shape, choice.lora_rank)


def seconds_per_sample(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """Return the modelled seconds that one sample costs, all cards working at once."""
    micro = (
        _arithmetic(shape, choice, speed)
        + _traffic(shape, choice, speed)
        + _micro_exchange(shape, choice, speed)
    )
    step = _step(shape, choice, speed)
    seconds = (choice.grad_accum * micro + step) / (choice.batch * choice.grad_accum * choice.gpus)
    seconds *= 1 + ENGINE_SHARE * (choice.deepspeed or choice.parallel == "fsdp")
    return seconds + (_generation(shape, choice, speed) if choice.task == "grpo" else 0.0)


def _passes(choice: Choice) -> int:
    """Forward, recomputed forward, gradients of activations, gradients of weights."""
    return 2 + choice.grad_ckpt + (choice.method == "full")


def _arithmetic(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    tokens = choice.batch * choice.seq
    attention = 2 * choice.seq * shape.heads * shape.head_dim * shape.layers
    flops = tokens * (2 * active_parameters(shape) * _passes(choice) + attention * (3 + choice.grad_ckpt))
    busy = BUSY * tokens / (tokens + HALF_BUSY_TOKENS)
    return flops / (speed.flops * busy) + LAUNCH_S * shape.layers * (1 + 0.5 * choice.grad_ckpt)


def _traffic(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """What moves through memory beside the products: logits, attention's scores, dequantised weights."""
    tokens = choice.batch * choice.seq
    moved = tokens * shape.vocab * (6.0 if choice.liger else 20.0)
    if choice.attn == "eager":
        moved += 12.0 * tokens * choice.seq * shape.heads * shape.layers
    if choice.attn == "sdpa":
        moved += 0.05 * tokens * shape.hidden * shape.layers
    if choice.method == "qlora":
        moved += (2 + choice.grad_ckpt) * DEQUANTISED * parameters(shape)
    return moved / speed.bandwidth


def _micro_exchange(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """What a micro step sends: whole weights there and back when they are sharded, gradients when split."""
    share = (choice.gpus - 1) / choice.gpus
    weights = parameters(shape) * (0.52 if choice.method == "qlora" else 2)
    seconds = 0.0
    if choice.parallel in ("zero3", "fsdp"):
        seconds += 2 * weights * share / speed.link
        if choice.offload_params:
            seconds += 2 * weights / choice.gpus / HOST_LINK
    if choice.parallel in ("zero2", "zero3", "fsdp"):
        seconds += 2 * trained_parameters(shape, choice) * share / speed.link
    return seconds


def _step(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """The optimizer's own step, and what it exchanges once."""
    trained = trained_parameters(shape, choice)
    shards = choice.gpus if choice.deepspeed or choice.parallel == "fsdp" else 1
    share = (choice.gpus - 1) / choice.gpus
    seconds = trained / shards * (8 if "8bit" in choice.optim else 16) / speed.bandwidth
    if choice.offload_optimizer:
        seconds += trained / shards * (28 / HOST_MEMORY + 4 / HOST_LINK)
    if choice.parallel in ("ddp", "zero1", "zero2"):
        seconds += 4 * trained * share / speed.link
    return seconds


def _generation(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """Answers of a whole batch are written together: each token reads the weights once for many answers."""
    cards = choice.vllm_gpus or choice.gpus
    together = min(64, max(1, choice.batch * choice.grad_accum * choice.gpus))
    reads = choice.seq / 2 * 2 * active_parameters(shape) / speed.bandwidth / together
    sums = choice.seq / 2 * 2 * active_parameters(shape) / (speed.flops * BUSY)
    return (reads + sums) / cards
