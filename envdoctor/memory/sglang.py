"""SGLang's budget: a share of what is free before loading holds weights and keys, the rest all that works."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from envdoctor.facts.quantities import GIB, MIB
from envdoctor.matrix import tables
from envdoctor.memory.constants import Constants
from envdoctor.memory.recipes import release_of
from envdoctor.memory.run import DTYPES, ServingRun
from envdoctor.memory.serving import (
    Budget,
    Engine,
    Verdict,
    card_bytes,
    key_bytes_per_token,
)
from envdoctor.specifiers import SpecifierSet
from envdoctor.values import NamedTuple

CARDS = (1, 2, 4, 8, 16)
WINDOW_POOLS = ("gpt_oss", "llama4", "llama4_text")
"""Model types whose layers with a window get a pool of their own.
https://github.com/sgl-project/sglang/blob/v0.5.9/python/sglang/srt/configs/model_config.py
"""
WORKSPACE = 512 * MIB
"""What a backend of attention works in, as SGLang itself reckons.
https://github.com/sgl-project/sglang/blob/v0.5.3/python/sglang/srt/server_args.py
"""
PIECES = ((32, 4), (256, 16), (512, 32), (1024, 64), (4096, 256))
"""Sizes of a prompt's piecewise graphs: up to the first number in steps of the second, above all in 512.
https://github.com/sgl-project/sglang/blob/v0.5.10/python/sglang/srt/server_args.py
"""


class Usual(NamedTuple):
    """What SGLang takes where nobody says it: the share, a chunk of a prompt, the largest graph."""

    share: float
    chunk: int
    graphs: int


def usual_settings(
    rows: Iterable[tables.StaticShareRow],
    release: str | None,
    gpu_bytes: int,
    cards: tuple[int, int],
    latent: bool,
    chunk: int | None = None,
    graphs: int | None = None,
) -> Usual | None:
    """Return what a release takes on cards of that size; None for one too old.

    `cards` are those that split each layer, and the groups of layers.
    """
    mib, version = gpu_bytes / MIB, release_of(release)
    row = next((one for one in rows if _holds(one, version, mib)), None)
    if row is None:
        return None
    tp, pp = cards
    tokens = chunk or row.chunk
    largest = graphs or (row.graphs_of_four if tp >= 4 and row.graphs_of_four else row.graphs)
    if row.shares:
        place = max(n for n, count in enumerate(CARDS) if count <= tp * pp)
        return Usual(row.shares[place], tokens, largest)
    kept = row.reserved_mib + row.card_mib * tp * pp
    kept += row.token_mib * max(tokens, 2048) + row.graph_mib * largest
    kept += row.latent_mib if latent else row.piece_mib * _pieces(tokens)
    kept = max(kept, row.least_mib)
    return Usual(round(1 - kept / mib, 3), tokens, largest)


def _holds(row: tables.StaticShareRow, version: Version, mib: float) -> bool:
    fits = row.from_mib <= mib and (row.below_mib is None or mib < row.below_mib)
    return fits and SpecifierSet(row.sglang).contains(version, prereleases=True)


def _pieces(tokens: int) -> int:
    """How many sizes up to that many tokens have a piecewise graph."""
    count, below = 0, 0
    for most, step in (*PIECES, (tokens, 512)):
        count += max(0, min(most, tokens) - below) // step
        below = most
    return count


def describe_static(run: ServingRun, constants: Constants) -> Engine:
    """Return what the engine takes of a card: its share is of what was free before the model was loaded.

    https://github.com/sgl-project/sglang/blob/v0.5.9/python/sglang/srt/model_executor/model_runner_kv_cache_mixin.py
    """
    shape, width = run.shape, DTYPES[run.dtype]
    chunk, graphs = run.max_batched_tokens or 2048, run.max_num_seqs or 8
    longest = run.max_model_len or shape.positions
    inner = chunk * (2 * shape.hidden + 3 * max(shape.ffn, shape.hidden) // run.tp) * width
    recorded = 3 * graphs * shape.layers * shape.hidden * width // 8 if run.cuda_graphs else 0
    return Engine(
        weights=card_bytes(shape, width, run.tp, run.pp) + constants.sglang_loaded,
        activations=0,
        graphs=WORKSPACE + inner + recorded,
        context=0,
        graphs_inside=False,
        budget=int(run.utilization * free_before(run, constants)),
        needed_keys=int(_token_bytes(run, constants) * longest),
        needed_tokens=longest,
    )


def free_before(run: ServingRun, constants: Constants) -> int:
    """Return what is free of a card before the model is loaded."""
    joined = constants.sglang_parallel if run.tp * run.pp > 1 else 0
    return run.gpu_bytes - run.beside_bytes - constants.sglang_before - joined


def _token_bytes(run: ServingRun, constants: Constants) -> float:
    """Bytes of a token that all layers keep, counting those of the smaller pool by its share."""
    shape = run.shape
    one = key_bytes_per_token(shape, run.key_bytes, run.tp, run.pp)
    if shape.model_type not in WINDOW_POOLS or not constants.sglang_window_percent:
        return one
    spared = shape.windowed_layers * (1 - constants.sglang_window_percent / 100)
    return one * (1 - spared / shape.layers)


def judge_share(run: ServingRun, constants: Constants) -> Verdict:
    """Return whether the engine finds memory for a token; more than the usual share is not sure to run."""
    engine, free = describe_static(run, constants), free_before(run, constants)
    low = (engine.weights + engine.needed_keys // engine.needed_tokens + 1) / free if free > 0 else 2.0
    high = 1 - engine.outside / free if free > 0 else 0.0
    refusal = "none" if low >= 1 else "low" if run.utilization < low else ""
    if refusal:
        return Verdict(Budget(low, high), refusal, "")
    left, needed = (1 - run.utilization) * free / GIB, engine.outside / GIB
    tight = f"{left:.1f} GiB are left beside the share, and a step and CUDA graphs may take {needed:.1f}"
    doubts = (tight if left < needed else "", run.shape.uncertain, run.shape.unseen)
    return Verdict(Budget(low, high), "", "; ".join(filter(None, doubts)))
