"""vLLM's budget: what it may take of a card, what the engine itself needs of that, what is left for keys."""

from __future__ import annotations

from typing import NamedTuple

from envdoctor.facts.quantities import MIB
from envdoctor.memory.constants import Constants
from envdoctor.memory.extras import STORED_BYTES
from envdoctor.memory.layout import layers, parameters
from envdoctor.memory.run import DTYPES, Component, Prediction, ServingRun
from envdoctor.memory.shape import ModelShape

BLOCK_TOKENS = 16
DEFAULT_SEQUENCES = 256
USABLE = 0.985
"""Of the memory that NVML reports, what CUDA offers (measured on cards of 24, 48, 80 and 141 GB)."""
REFUSALS = {
    "none": "no utilisation will do: one longest request needs {low:.2f} of it, and {high:.2f} can be had",
    "low": "the budget is too low: vLLM refuses to start without blocks for one longest request ({low:.2f})",
    "high": "the budget is too high: what lies outside it does not fit beside it ({high:.2f} is the most)",
}
DEFAULT_BATCHED_TOKENS = 8192


class Engine(NamedTuple):
    """An engine's needs on one card, in bytes, but for the tokens it must hold."""

    weights: int
    activations: int
    graphs: int
    context: int
    budget: int
    keys_per_token: int
    needed_tokens: int

    @property
    def keys(self) -> int:
        """What the budget leaves for keys and values; negative when it leaves nothing."""
        return self.budget - self.weights - self.activations - self.context


def key_bytes_per_token(shape: ModelShape, width: int, tp: int, pp: int) -> int:
    """Bytes of keys and values of one token on one card."""
    layers = -(-shape.layers // pp)
    if shape.latent:
        return layers * (shape.latent.rank + shape.latent.rope_width) * width
    return 2 * layers * max(1, shape.kv_heads // tp) * shape.head_dim * width


def served_bytes(shape: ModelShape, width: int) -> int:
    """Bytes of all weights as an engine loads them: stored ones stay as they are, beside a plain rest."""
    if not shape.stored:
        return parameters(shape) * width
    stacks = sum(n * count for layer, count in layers(shape) for n in layer.stacks[:2])
    linears = sum(m.weight * m.times * count for layer, count in layers(shape) for m in layer.linears)
    small = stacks if shape.stored == "mxfp4" else stacks + linears
    return int((parameters(shape) - small) * width + small * STORED_BYTES[shape.stored])


def describe_engine(run: ServingRun, constants: Constants) -> Engine:
    """Return what the engine needs."""
    shape, width = run.shape, DTYPES[run.dtype]
    longest = run.max_model_len or shape.positions
    sequences = run.max_num_seqs or DEFAULT_SEQUENCES
    batched = run.max_batched_tokens or max(DEFAULT_BATCHED_TOKENS, min(longest, 16384))
    weights = served_bytes(shape, width) // (run.tp * run.pp)
    inner = batched * (2 * shape.hidden + 3 * max(shape.ffn, shape.hidden) // run.tp) * width
    sampled = min(sequences, batched) * shape.vocab * (4 + 4 + width)
    graphs = 3 * min(sequences, 512) * shape.layers * shape.hidden * width // 8 if run.cuda_graphs else 0
    return Engine(
        weights,
        max(inner, sampled),
        graphs + (200 * MIB if run.cuda_graphs else 0),
        constants.vllm_context,
        int(run.utilization * run.gpu_bytes),
        key_bytes_per_token(shape, width, run.tp, run.pp),
        longest,
    )


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
    blocks = -(-engine.needed_tokens // BLOCK_TOKENS)
    needed = (
        engine.weights + engine.activations + engine.context + blocks * BLOCK_TOKENS * engine.keys_per_token
    )
    outside = run.beside_bytes + engine.graphs + constants.cuda_context
    return Budget(needed / run.gpu_bytes, USABLE - outside / run.gpu_bytes)


def predict_serving(run: ServingRun, constants: Constants) -> Prediction:
    """Return what the engine takes of its card; too low a utilisation is said in `uncertain`."""
    engine = describe_engine(run, constants)
    low, high = bounds = utilization_bounds(run, constants)
    refusal = bounds.refusal(run.utilization)
    allocated = max(engine.budget, engine.weights + engine.activations + engine.context) - engine.context
    device = allocated + engine.context + engine.graphs + constants.cuda_context + run.beside_bytes
    notes = [
        f"keys and values: {max(0, engine.keys) // engine.keys_per_token} tokens, "
        f"{engine.needed_tokens} wanted for one longest request",
        f"utilisation between {low:.2f} (one longest request) and {high:.2f} (room beside the engine)",
    ]
    refused = REFUSALS[refusal].format(low=low, high=high) if refusal else ""
    notes += [refused] if refused else []
    parts = (
        Component("weights", engine.weights),
        Component("activations", engine.activations),
        Component("keys and values", max(0, engine.keys)),
        Component("CUDA graphs", engine.graphs),
        Component("beside the engine", run.beside_bytes),
    )
    return Prediction(
        allocated,
        allocated + engine.graphs,
        device,
        engine.weights,
        "generate",
        tuple(p for p in parts if p.bytes),
        {"load": engine.weights, "generate": allocated},
        "analytic",
        tuple(notes),
        run.shape.uncertain,
        refused,
    )
