"""vLLM's budget: what it may take of a card, what the engine itself needs of that, what is left for keys."""

from __future__ import annotations

from collections.abc import Mapping

from envdoctor.errors import InputError
from envdoctor.facts.quantities import MIB
from envdoctor.memory.constants import Constants
from envdoctor.memory.extras import STORED_BYTES
from envdoctor.memory.layout import layers, parameters
from envdoctor.memory.run import DTYPES, ServingRun
from envdoctor.memory.shape import Experts, ModelShape
from envdoctor.memory.slots import slot_bytes
from envdoctor.values import NamedTuple, replace

BLOCK_TOKENS = 16
LARGE_CARD = 70 << 30
"""From this memory on vLLM takes larger steps: EngineArgs' defaults for a server.
https://github.com/vllm-project/vllm/blob/v0.11.2/vllm/engine/arg_utils.py"""
USUAL_STEPS = {True: (1024, 8192), False: (256, 2048)}
"""Requests at a time and tokens of a step, on a large card and on another, as any A100 is."""
USABLE = 0.985
"""Of the memory that NVML reports, what CUDA offers (measured on cards of 24, 48, 80 and 141 GB)."""
EXPERTS_ALONE = ("mxfp4", "int4-g32")
"""Ways of storing weights that models with experts are published in, all else of them left in 16 bits."""
IN_FLIGHT = {"bitsandbytes": "nf4", "nf4": "nf4", "fp8": "fp8"}
"""What vLLM makes of plain weights while it loads them, by the method that is asked for.
https://docs.vllm.ai/en/latest/features/quantization/bnb.html
https://docs.vllm.ai/en/latest/features/quantization/fp8.html
"""
SAME: Mapping[str, tuple[str, ...]] = {
    "bitsandbytes": ("nf4", "int8"),
    "gptq": ("int8",),
    "awq": ("int8",),
    "compressed-tensors": ("awq", "fp8", "int8", "int4-g32", "nvfp4"),
    "marlin": ("awq", "gptq"),
    "fbgemm_fp8": ("fp8",),
    "modelopt": ("fp8",),
    "modelopt_fp4": ("nvfp4",),
    "moe_wna16": ("awq", "gptq"),
}
"""Ways of storing that a method's name in vLLM covers, beside its own.
https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/model_executor/layers/quantization/__init__.py
"""


class Engine(NamedTuple):
    """An engine's needs on one card, in bytes, but for the tokens it must hold."""

    weights: int
    activations: int
    graphs: int
    context: int
    graphs_inside: bool  # whether the share that it may take counts its graphs
    budget: int
    needed_keys: int  # for one longest request
    needed_tokens: int
    slots: int = 0  # for adapters

    @property
    def fixed(self) -> int:
        """What the budget holds beside keys and values."""
        inside = self.graphs if self.graphs_inside else 0
        return self.weights + self.slots + self.activations + self.context + inside

    @property
    def outside(self) -> int:
        """What the graphs take beside the budget."""
        return 0 if self.graphs_inside else self.graphs

    @property
    def keys(self) -> int:
        """What the budget leaves for keys and values; negative when it leaves nothing."""
        return self.budget - self.fixed

    @property
    def tokens(self) -> int:
        """The "GPU KV cache size" that vLLM logs: how often a longest request fits, times its length."""
        return max(0, self.keys) * self.needed_tokens // self.needed_keys


def request_keys(
    shape: ModelShape, width: int, tp: int, pp: int, tokens: int, batched: int, block: int = BLOCK_TOKENS
) -> int:
    """Bytes of keys and values on one card that vLLM wants for a request of that many tokens.

    Layers with a window hold no more than the window and one step. Layers of both kinds form groups of one
    size, the last of a kind filled up, that share a pool of blocks.
    https://github.com/vllm-project/vllm/blob/v0.11.2/vllm/v1/core/kv_cache_utils.py
    """
    one = key_bytes_per_token(shape, width, tp, shape.layers) * block
    windowed = -(-shape.windowed_layers // pp)
    full = -(-shape.layers // pp) - windowed
    whole = -(-tokens // block)
    if not windowed or not shape.window:
        return one * full * whole
    held = -(-min(shape.window - 1 + batched, tokens) // block) + 1
    if not full:
        return one * windowed * min(held, whole)
    few, many = sorted((full, windowed))
    group = many if many < 1.25 * few else few
    return one * group * (-(-full // group) * whole + -(-windowed // group) * held)


def key_bytes_per_token(shape: ModelShape, width: int, tp: int, pp: int) -> int:
    """Bytes of keys and values of one token on one card."""
    layers = -(-shape.layers // pp)
    if shape.latent:
        return layers * (shape.latent.rank + shape.latent.rope_width) * width
    return 2 * layers * max(1, shape.kv_heads // tp) * shape.head_dim * width


def served_bytes(shape: ModelShape, width: int, marlin: bool = True) -> int:
    """Bytes of all weights as an engine loads them: stored ones stay as they are, beside a plain rest.

    `marlin` when experts of four bits lie as its kernels want them.
    """
    if not shape.stored:
        return parameters(shape) * width
    stacks = sum(n * count for layer, count in layers(shape) for n in layer.stacks[:2])
    if shape.stored in EXPERTS_ALONE and shape.experts:
        padding = _padding(shape, shape.experts, marlin) if shape.stored == "mxfp4" else 1
        return (parameters(shape) - stacks) * width + int(stacks * padding * STORED_BYTES[shape.stored])
    linears = sum(m.weight * m.times * count for layer, count in layers(shape) for m in layer.linears)
    small = stacks + linears
    return int((parameters(shape) - small) * width + small * STORED_BYTES[shape.stored])


def card_bytes(shape: ModelShape, width: int, tp: int, pp: int, marlin: bool = True) -> int:
    """Bytes of the weights on one of the cards that split each layer.

    Whole on each lie routers and the matrices that lead into latent attention's ranks, and a key head where
    there are fewer than cards. The matrix that leads out of the ranks lies there in 16 bits as well, once it
    is quantised.
    https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/model_executor/layers/attention/mla_attention.py
    """
    plain = not shape.stored or (shape.stored in EXPERTS_ALONE and shape.experts is not None)
    small = width if plain else STORED_BYTES[shape.stored]
    into = {"q_a", "kv_a"} | ({"k", "v"} if shape.kv_heads < tp else set())
    whole, more = 0.0, 0.0
    for layer, count in layers(shape):
        for linear in layer.linears:
            if linear.role in into:
                copies = tp - 1 if shape.latent else tp / shape.kv_heads - 1
                whole += count * linear.weight * small * copies
            elif linear.role == "kv_b" and not plain:
                more += count * linear.weight * width
        whole += count * sum(layer.stacks[2:3]) * width * (tp - 1)
    return int(served_bytes(shape, width, marlin) + whole + more) // (tp * pp) + _rotary_bytes(shape)


def _rotary_bytes(shape: ModelShape) -> int:
    """Bytes of the table of angles: as long as the model's positions, in 16 bits, whole on each card.

    https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/model_executor/layers/rotary_embedding/base.py
    """
    if not shape.rope or shape.alibi or shape.learned_positions:
        return 0
    turned = shape.latent.rope_width if shape.latent else int(shape.head_dim * shape.rotary_share)
    return shape.positions * turned * DTYPES["bf16"]


def _padding(shape: ModelShape, experts: Experts, marlin: bool) -> float:
    """By how much experts grow whose sides are filled up for the kernels of four bits.

    Marlin's fill up both sides, those for Hopper the one that is summed over, and not of the scales.
    https://github.com/vllm-project/vllm/blob/v0.11.2/vllm/model_executor/layers/quantization/mxfp4.py
    https://github.com/triton-lang/triton/tree/main/python/triton_kernels/triton_kernels/tensor_details
    """
    summed = -(-shape.hidden // 256) * 256 / shape.hidden
    if marlin:
        return summed * (-(-experts.width // 128) * 128) / experts.width
    values = 0.5 / STORED_BYTES["mxfp4"]
    return summed * values + 1 - values


def describe_engine(run: ServingRun, constants: Constants) -> Engine:
    """Return what the engine needs."""
    shape, width = run.shape, DTYPES[run.dtype]
    longest = run.max_model_len or shape.positions
    usual = USUAL_STEPS[run.gpu_bytes >= LARGE_CARD and "A100" not in run.card.upper()]
    sequences = run.max_num_seqs or usual[0]
    batched = run.max_batched_tokens or usual[1]
    weights = card_bytes(shape, width, run.tp, run.pp, constants.vllm_marlin > 0)
    joined = constants.vllm_parallel if run.tp > 1 else 0
    spread, held = _spread_tokens(shape, batched, run.tp, constants)
    inner = batched * (2 * shape.hidden + 3 * max(shape.ffn, shape.hidden) // run.tp) * width + spread
    rows = min(sequences, batched)
    sampled = rows * shape.vocab * constants.vllm_logit_bytes + (batched + rows) * shape.hidden * width + held
    return Engine(
        weights,
        max(inner, sampled),
        _graph_bytes(shape, width, sequences, constants) if run.cuda_graphs else 0,
        constants.vllm_context + joined,
        constants.vllm_graphs_inside > 0,
        int(run.utilization * run.gpu_bytes),
        request_keys(shape, run.key_bytes, run.tp, run.pp, longest, batched),
        longest,
        slot_bytes(run, constants),
    )


def _spread_tokens(shape: ModelShape, batched: int, tp: int, constants: Constants) -> tuple[int, int]:
    """Bytes of a step's tokens, one copy for each of their experts: while profiling, and kept since then.

    Kernels of the modular kind keep what they worked in, two such copies, so that sampling comes on top.
    https://github.com/vllm-project/vllm/blob/v0.18.0/vllm/model_executor/layers/fused_moe/modular_kernel.py
    """
    if shape.experts is None:
        return 0, 0
    wide = max(2 * shape.experts.width // tp, shape.hidden)
    spread = 2 * batched * shape.experts.active * wide * DTYPES["bf16"]
    kept = {"": constants.vllm_keeps_experts, "fp8": constants.vllm_keeps_fp8_experts}.get(shape.stored, 0)
    return spread, spread if kept else 0


def _graph_bytes(shape: ModelShape, width: int, sequences: int, constants: Constants) -> int:
    """Bytes of the graphs: of so many a layer where that is known by measuring, else of what they hold."""
    if constants.vllm_graph_layer:
        return shape.layers * constants.vllm_graph_layer
    return 200 * MIB + 3 * min(sequences, 512) * shape.layers * shape.hidden * width // 8


class Budget(NamedTuple):
    """The least utilisation that holds one longest request, and the most that leaves room beside it."""

    low: float
    high: float

    def refusal(self, share: float) -> str:
        """Why an engine of that utilisation does not run: "none", "low" or "high"; empty when it does."""
        if self.low > self.high:
            return "none"
        return "low" if share < self.low else "high" if share > self.high else ""


def utilization_bounds(run: ServingRun, constants: Constants) -> Budget:
    """Return the utilisations with which the engine starts and has room; the driver's share is left to it."""
    engine = describe_engine(run, constants)
    needed = engine.fixed + engine.needed_keys
    outside = run.beside_bytes + engine.outside + constants.cuda_context
    return Budget(needed / run.gpu_bytes, USABLE - outside / run.gpu_bytes)


class Verdict(NamedTuple):
    """Whether an engine runs: `refusal` is empty, or why it does not; `uncertain` is why neither is sure."""

    bounds: Budget
    refusal: str
    uncertain: str


def loaded_as(shape: ModelShape, quant: str | None) -> ModelShape:
    """Return a shape as vLLM loads it, told by that name of a method; raises InputError where it cannot be.

    Stored weights stay what they are, whichever kernels are named for them (`awq_marlin`).
    """
    method = (quant or "none").lower().removesuffix("_marlin")
    if method in ("none", "null", shape.stored):
        return shape
    if shape.stored:
        if shape.stored in SAME.get(method, ()):
            return shape
        raise InputError(f"--quant {method}: the weights of {shape.name} are stored as {shape.stored}")
    made = IN_FLIGHT.get(method)
    if made is None:
        known = ", ".join(IN_FLIGHT)
        raise InputError(f"--quant {method}: vLLM makes {known} of plain weights while it loads them")
    return replace(shape, stored=made)
