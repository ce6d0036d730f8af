"""vLLM's budget: what it may take of a card, what the engine itself needs of that, what is left for keys."""

from __future__ import annotations

from typing import NamedTuple

from envdoctor.memory.constants import Constants
from envdoctor.memory.layout import parameters
from envdoctor.memory.run import DTYPES, Component, Prediction, ServingRun
from envdoctor.memory.shape import ModelShape

MIB = 1 << 20
BLOCK_TOKENS = 16
DEFAULT_SEQUENCES = 256
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


def describe_engine(run: ServingRun, constants: Constants) -> Engine:
    """Return what the engine needs."""
    shape, width = run.shape, DTYPES[run.dtype]
    longest = run.max_model_len or shape.positions
    sequences = run.max_num_seqs or DEFAULT_SEQUENCES
    batched = run.max_batched_tokens or max(DEFAULT_BATCHED_TOKENS, min(longest, 16384))
    weights = parameters(shape) * width // (run.tp * run.pp)
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


def utilization_bounds(run: ServingRun, constants: Constants) -> tuple[float, float]:
    """Return the least utilisation that holds one longest request, and the most that leaves room beside."""
    engine = describe_engine(run, constants)
    blocks = -(-engine.needed_tokens // BLOCK_TOKENS)
    needed = (
        engine.weights + engine.activations + engine.context + blocks * BLOCK_TOKENS * engine.keys_per_token
    )
    outside = run.beside_bytes + engine.graphs + constants.cuda_context
    return needed / run.gpu_bytes, (run.gpu_bytes - outside) / run.gpu_bytes


def predict_serving(run: ServingRun, constants: Constants) -> Prediction:
    """Return what the engine takes of its card; too low a utilisation is said in `uncertain`."""
    engine = describe_engine(run, constants)
    low, high = utilization_bounds(run, constants)
    allocated = max(engine.budget, engine.weights + engine.activations + engine.context) - engine.context
    device = allocated + engine.context + engine.graphs + constants.cuda_context + run.beside_bytes
    notes = [
        f"keys and values: {max(0, engine.keys) // engine.keys_per_token} tokens, "
        f"{engine.needed_tokens} wanted for one longest request",
        f"utilisation between {low:.2f} (one longest request) and {high:.2f} (room beside the engine)",
    ]
    if run.utilization < low:
        notes.append("the budget is too low: vLLM refuses to start without blocks for one longest request")
    if run.utilization > high:
        notes.append("the budget is too high: what lies outside it does not fit beside it")
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
    )
