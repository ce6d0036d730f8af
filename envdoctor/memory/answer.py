"""One question, answered by the tier that was asked for, with what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from envdoctor.errors import InputError
from envdoctor.memory.analytic import predict
from envdoctor.memory.constants import Constants
from envdoctor.memory.layout import active_parameters, parameters
from envdoctor.memory.run import Prediction, ServingRun, TrainingRun

MODELLED = {
    "torch": "2.11",
    "transformers": "5.17",
    "accelerate": "1.15",
    "peft": "0.21",
    "bitsandbytes": "0.50",
    "deepspeed": "0.19",
    "liger-kernel": "0.8",
}


class Tier(NamedTuple):
    """How to answer: analytic, trace or measure; the latter two with a model's config and an interpreter."""

    name: str
    config: Mapping[str, Any]
    python: str


ANALYTIC = Tier("analytic", {}, "")


def answer(
    run: TrainingRun | ServingRun,
    constants: Constants,
    gpu_bytes: int | None,
    stack: Mapping[str, str],
    tier: Tier = ANALYTIC,
) -> Prediction:
    """Return the prediction of the wanted tier.

    Raises InputError for a tier that does not know this kind of run, Unavailable when it cannot run.
    """
    prediction = predict(run, constants)
    if isinstance(run, ServingRun):
        if tier.name != "analytic":
            raise InputError("--trace and --measure are for training runs")
        return _assuming(prediction, run, stack)
    if tier.name == "trace":
        from envdoctor.memory.trace import trace_run

        prediction = trace_run(run, tier.config, prediction, constants, tier.python)
    elif tier.name == "measure":
        from envdoctor.memory.measure import measure_run

        prediction = measure_run(run, tier.config, prediction, constants, tier.python)
    if run.task == "grpo":
        from envdoctor.memory.grpo import add_engine

        prediction = add_engine(run, prediction, gpu_bytes, constants)
    return _assuming(prediction, run, stack)


def _assuming(prediction: Prediction, run: TrainingRun | ServingRun, stack: Mapping[str, str]) -> Prediction:
    total, active = parameters(run.shape), active_parameters(run.shape)
    notes = [
        f"{total / 1e9:.2f} billion parameters" + (f", {active / 1e9:.2f} active" if active < total else "")
    ]
    if isinstance(run, TrainingRun):
        notes += [f"{name} {version}: as modelled" for name, version in _modelled(run, stack).items()]
        notes.append("every row as long as --seq")
    return replace(prediction, assumptions=(*notes, *prediction.assumptions))


def _modelled(run: TrainingRun, stack: Mapping[str, str]) -> dict[str, str]:
    """The libraries that this run uses: the version at hand, or the one that the terms were written for."""
    used = ["torch", "transformers", "accelerate"]
    used += ["peft"] if run.method != "full" else []
    used += ["bitsandbytes"] if run.method == "qlora" else []
    used += ["deepspeed"] if run.parallel.startswith("zero") else []
    used += ["liger-kernel"] if run.liger else []
    return {name: stack.get(name, MODELLED[name]) for name in used}
