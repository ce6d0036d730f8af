"""GRPO: a policy in training and the engine that samples from it, on the same card or on its own."""

from __future__ import annotations

from envdoctor.memory.constants import Constants
from envdoctor.memory.run import Component, Prediction, ServingRun, TrainingRun
from envdoctor.memory.serving import describe_engine, utilization_bounds
from envdoctor.values import replace


def add_engine(
    run: TrainingRun, trained: Prediction, gpu_bytes: int | None, constants: Constants
) -> Prediction:
    """Return the prediction of training with a colocated vLLM beside it (TRL's `colocate`, no sleep mode).

    A utilisation of 0 says that vLLM runs elsewhere. Without a known card the engine is taken at the least
    it needs for one longest request.
    """
    share = run.vllm_utilization
    if share == 0:
        note = "vLLM runs on cards of its own; nothing of it lies here"
        return replace(trained, assumptions=(*trained.assumptions, note))
    if share is None:
        share = constants.grpo_utilization_percent / 100
    engine_run = ServingRun(
        run.shape, gpu_bytes or 1, share, run.dtype if run.dtype != "fp32" else "bf16",
        run.max_model_len or run.seq, run.max_num_seqs, tp=1,
    )  # fmt: skip
    engine = describe_engine(engine_run, constants)
    least = engine.fixed + engine.needed_keys
    taken = (max(engine.budget, least) if gpu_bytes else least) + engine.outside
    notes = [f"a colocated vLLM takes {taken / (1 << 30):.1f} GiB and keeps it while the policy trains"]
    if gpu_bytes:
        low, _ = utilization_bounds(engine_run, constants)
        if share < low:
            notes.append(f"utilisation {share:.2f} is too low for one longest request (least {low:.2f})")
        room = (gpu_bytes - trained.device_bytes - engine.outside) / gpu_bytes
        notes.append(f"beside this training the utilisation may be at most {max(0.0, room):.2f}")
    return replace(
        trained,
        device_bytes=trained.device_bytes + taken,
        outside=(*trained.outside, Component("vLLM beside it", taken)),
        phases={**trained.phases, "generate": trained.phases["forward"] + taken},
        assumptions=(*trained.assumptions, *notes),
    )
