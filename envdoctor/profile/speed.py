"""How fast a setting is beside another: a simple cost model of one optimizer step, never a measurement.

A micro step takes as long as the slower of card (products, and bytes that norms, adapters and the loss
move) and host (launches); what cards exchange is added. The figures were fitted to 44 settings timed on
an H200 with 16 host cores (`benchmarks/speed.py`): order and rough ratios are what they are good for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import tables
from envdoctor.memory import ModelShape
from envdoctor.memory.layout import active_parameters, attention_linears, mlp_linears, parameters
from envdoctor.memory.methods import METHODS
from envdoctor.profile.workload import Choice
from envdoctor.values import dataclass

BUSY = 0.62
"""The share of a card's throughput that matrix products reach in training."""
LAUNCHES = {"full": 3.1e-3, "lora": 5.1e-3, "qlora": 8.3e-3}
"""Seconds that the host takes to launch one layer's kernels, there and back, by what is trained."""
LAUNCHES_AGAIN = {"full": 2.75e-3, "lora": 4.1e-3, "qlora": 5.2e-3}
"""The same for a layer's second forward pass under a checkpoint."""
LAUNCHES_LIGER = 1.1e-3
"""What Liger's Triton kernels take longer to launch."""
LOGIT_BYTES = {False: 48.0, True: 24.0}
"""Bytes that move for each logit, without and with Liger's fused loss."""
ELEMENT_BYTES = {False: 24.0, True: 4.0}
"""Bytes that move for each element that norms, activations and rotations touch in a layer."""
ADAPTED_BYTES = 22.0
"""Bytes that move for each element that an adapter reads or writes: casts to fp32 and back, and a sum."""
OVERLAP = 4
"""How sharply the slower of card and host decides: a power mean of both."""
HOST_LINK, HOST_MEMORY = 10e9, 40e9
"""Bytes a second between card and host, and of an optimizer that steps in host memory."""
DEQUANTISED = 2.5
"""Bytes that rebuilding a 4-bit weight moves in one pass."""
ENGINE_SHARE = 0.02
"""What DeepSpeed and FSDP add to a step; plain data parallelism wins where nothing needs sharding."""


@dataclass(frozen=True, slots=True)
class CardSpeed:
    """FLOP/s in 16 bit, bytes/s of the card's memory, bytes/s to another card of the host."""

    flops: float
    bandwidth: float
    link: float


def card_speed(rows: Iterable[tables.SpeedRow], capability: ComputeCapability | None) -> CardSpeed:
    """Return the figures of the nearest capability that is not higher, or of an unknown card."""
    rows = tuple(rows)
    lower = [r for r in rows if r.compute_capability and capability and r.compute_capability <= capability]
    unknown = next(row for row in rows if row.compute_capability is None)
    row = max(lower, key=lambda row: row.compute_capability or ComputeCapability(0, 0), default=unknown)
    return CardSpeed(row.tflops * 1e12, row.bandwidth * 1e9, row.link * 1e9)


@lru_cache(maxsize=256)
def adapter_parameters(shape: ModelShape, rank: int) -> int:
    """Return the parameters of adapters on all linears of a dense layer."""
    linears = (*attention_linears(shape), *mlp_linears(shape, shape.ffn))
    return shape.layers * sum(rank * (linear.inputs + linear.outputs) for linear in linears)


def trained_parameters(shape: ModelShape, choice: Choice) -> int:
    """Return how many parameters the optimizer steps, of vectors and tokens about as many as of rank 1."""
    layers = METHODS[choice.method].layers
    if layers in ("first", "last"):
        some = choice.trained_layers or METHODS[choice.method].trained
        return parameters(shape) * some // shape.layers
    if layers:
        return parameters(shape)
    return adapter_parameters(shape, choice.lora_rank if "lora" in choice.method else 1)


def seconds_per_sample(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """Return the modelled seconds that one sample costs, all cards working at once."""
    card, host = _computing(shape, choice, speed), _launching(shape, choice)
    micro = float((card**OVERLAP + host**OVERLAP) ** (1 / OVERLAP)) + _micro_exchange(shape, choice, speed)
    step = _step(shape, choice, speed)
    seconds = (choice.grad_accum * micro + step) / (choice.batch * choice.grad_accum * choice.gpus)
    seconds *= 1 + ENGINE_SHARE * (choice.deepspeed or choice.parallel == "fsdp")
    return seconds + (_generation(shape, choice, speed) if choice.task == "grpo" else 0.0)


def _passes(choice: Choice) -> int:
    """Forward, recomputed forward, gradients of activations, gradients of weights."""
    return 2 + choice.grad_ckpt + (METHODS[choice.method].layers in ("all", "drawn"))


def _computing(shape: ModelShape, choice: Choice, speed: CardSpeed) -> float:
    """The card's own time for a micro step: products, and what moves through its memory beside them."""
    tokens = choice.batch * choice.seq
    attention = 2 * choice.seq * shape.heads * shape.head_dim * shape.layers
    flops = tokens * (2 * active_parameters(shape) * _passes(choice) + attention * (3 + choice.grad_ckpt))
    return flops / (speed.flops * BUSY) + _moved(shape, choice, tokens) / speed.bandwidth


def _moved(shape: ModelShape, choice: Choice, tokens: int) -> float:
    again = (3 + choice.grad_ckpt) / 3
    layers = tokens * shape.layers * again
    moved = tokens * shape.vocab * LOGIT_BYTES[choice.liger]
    moved += layers * (6 * shape.hidden + 2 * shape.ffn) * ELEMENT_BYTES[choice.liger]
    if choice.attn == "eager":
        moved += 12.0 * tokens * choice.seq * shape.heads * shape.layers
    if choice.attn == "sdpa":
        moved += 0.05 * tokens * shape.hidden * shape.layers
    if "lora" in choice.method:
        moved += layers * ADAPTED_BYTES * adapter_parameters(shape, 1) / shape.layers
    if choice.method == "qlora":
        moved += (2 + choice.grad_ckpt) * DEQUANTISED * parameters(shape)
    return moved


def _launching(shape: ModelShape, choice: Choice) -> float:
    """The host's time to launch a micro step, during which a card with little to do waits."""
    method = choice.method if "lora" in choice.method else "full"
    layer = LAUNCHES[method] + LAUNCHES_LIGER * choice.liger
    return shape.layers * (layer + LAUNCHES_AGAIN[method] * choice.grad_ckpt)


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
