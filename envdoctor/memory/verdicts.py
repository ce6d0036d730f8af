"""One verdict on an engine, vLLM's or SGLang's, and what it takes of its card, for whoever asks."""

from __future__ import annotations

from bisect import bisect_left

from envdoctor.facts.quantities import GIB
from envdoctor.memory.constants import Constants
from envdoctor.memory.run import Component, Prediction, ServingRun
from envdoctor.memory.serving import Budget, Verdict, describe_engine, utilization_bounds
from envdoctor.memory.sglang import describe_static, free_before, judge_share
from envdoctor.values import replace

SPLITS = (2, 4, 8, 16)
LENGTH_STEP = 1024
REFUSALS = {
    "none": "no utilisation will do: one longest request needs {low:.2f} of it, and {high:.2f} can be had",
    "low": "the budget is too low: vLLM refuses to start without blocks for one longest request ({low:.2f})",
    "high": "the budget is too high: what lies outside it does not fit beside it ({high:.2f} is the most)",
}


def judge(run: ServingRun, constants: Constants) -> Verdict:
    """Return the verdict on an engine, the same for whoever asks.

    On a card that is sold in several sizes it is uncertain where it hangs on which of them it is.
    """
    verdict = _on_smallest(run, constants)
    if run.largest_bytes <= run.gpu_bytes:
        return verdict
    larger = _on_smallest(replace(run, gpu_bytes=run.largest_bytes), constants)
    if bool(larger.refusal) is bool(verdict.refusal):
        return verdict
    other = "it would run" if verdict.refusal else "it would not run"
    doubt = f"the card is sold in several sizes, and with {run.largest_bytes / GIB:.2f} GiB {other}"
    return verdict._replace(uncertain="; ".join(filter(None, (doubt, verdict.uncertain))))


def _on_smallest(run: ServingRun, constants: Constants) -> Verdict:
    if run.engine == "sglang":
        return judge_share(run, constants)
    bounds = utilization_bounds(run, constants)
    refusal = bounds.refusal(run.utilization)
    uncounted = () if refusal else (run.shape.uncertain, run.shape.unseen)  # more changes no refusal
    return Verdict(bounds, refusal, "; ".join(filter(None, uncounted)))


def predict_serving(run: ServingRun, constants: Constants) -> Prediction:
    """Return what the engine takes of its card, and the verdict on it."""
    if run.engine == "sglang":
        return _predict_static(run, constants)
    engine = describe_engine(run, constants)
    bounds, refusal, uncertain = judge(run, constants)
    low, high = bounds
    held = max(engine.budget, engine.fixed) + engine.outside
    allocated = held - engine.context - engine.graphs
    device = held + constants.cuda_context + run.beside_bytes
    notes = [
        f"keys and values: {engine.tokens} tokens, {engine.needed_tokens} wanted for one longest request",
        f"utilisation between {low:.2f} (one longest request) and {high:.2f} (room beside the engine)",
    ]
    ways = _ways_out(run, constants, bounds) if refusal else ()
    told = f"; it would with {' or '.join(ways)}" if ways else ""
    refused = REFUSALS[refusal].format(low=low, high=high) + told if refusal else ""
    notes += [refused] if refused else []
    parts = (
        Component("weights", engine.weights),
        Component("slots for adapters", engine.slots),
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
        uncertain or run.shape.uncertain,
        refused,
    )


def _ways_out(run: ServingRun, constants: Constants, bounds: Budget) -> tuple[str, ...]:
    """Return what alone would let the engine run: a share, cards that split each layer, a shorter request."""
    low, high = bounds
    share = (f"--vllm-utilization {(low + high) / 2:.2f}",) if low <= high else ()
    split = least_split(run, constants)
    longest = run.max_model_len or run.shape.positions
    shorter = range(LENGTH_STEP, longest, LENGTH_STEP)
    count = bisect_left(
        shorter, True, key=lambda length: not _runs(replace(run, max_model_len=length), constants)
    )
    length = (f"--max-model-len {shorter[count - 1]}",) if count else ()
    return (*share, *((f"--tp {split}",) if split else ()), *length)


def least_split(run: ServingRun, constants: Constants) -> int | None:
    """Return the fewest cards, more than the run has, that would hold it; None where no usual count does."""
    wider = (replace(run, tp=cards) for cards in SPLITS if cards > run.tp and run.shape.heads % cards == 0)
    return next((one.tp for one in wider if _runs(one, constants)), None)


def _runs(run: ServingRun, constants: Constants) -> bool:
    return not judge(run, constants).refusal


def _predict_static(run: ServingRun, constants: Constants) -> Prediction:
    """Return what the engine takes of its card, and the verdict on it."""
    engine = describe_static(run, constants)
    (low, _), refusal, uncertain = judge(run, constants)
    allocated = max(engine.budget, engine.fixed)
    device = allocated + engine.outside + run.gpu_bytes - free_before(run, constants)
    notes = [
        f"mem_fraction_static {run.utilization:g}; from {low:.2f} on weights and a token fit",
        f"keys and values: {engine.tokens} tokens for all requests together (max_total_num_tokens)",
    ]
    if engine.tokens < engine.needed_tokens and not refusal:
        notes.append(f"requests are cut to that length, shorter than the {engine.needed_tokens} asked for")
    refused = _filled(run, constants, low) if refusal else ""
    parts = (
        Component("weights", engine.weights),
        Component("keys and values", max(0, engine.keys)),
        Component("a step and CUDA graphs", engine.outside),
        Component("beside the engine", run.beside_bytes),
    )
    return Prediction(
        allocated + engine.outside,
        allocated + engine.outside,
        device,
        engine.weights,
        "generate",
        tuple(part for part in parts if part.bytes),
        {"load": engine.weights, "generate": allocated + engine.outside},
        "analytic",
        tuple(notes),
        uncertain or run.shape.uncertain,
        refused,
    )


def _filled(run: ServingRun, constants: Constants, low: float) -> str:
    """Say that nothing is left for keys, and what alone would help."""
    split = least_split(run, constants)
    ways = [f"--mem-fraction-static {low + 0.005:.2f} or more"] if low < 0.95 else []
    ways += [f"--tp {split}"] if split else []
    told = f"; it would with {' or '.join(ways)}" if ways else ""
    return (
        f"the weights leave no memory for keys: SGLang refuses to start ({low:.2f} is the least share){told}"
    )
