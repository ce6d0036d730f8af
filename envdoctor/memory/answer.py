"""One question, answered by the tier that was asked for, with what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from envdoctor.errors import InputError
from envdoctor.facts.quantities import GIB
from envdoctor.memory.adapters import adapter_tensors, copied_tensors
from envdoctor.memory.analytic import predict
from envdoctor.memory.constants import Constants
from envdoctor.memory.layout import active_parameters, parameters
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.memory.recipes import TRAINERS
from envdoctor.memory.run import Prediction, ServingRun, TrainingRun
from envdoctor.memory.settings import settings_of
from envdoctor.memory.sharding import host_bytes
from envdoctor.values import NamedTuple, dataclass, replace

MODELLED = {
    "torch": "2.11",
    "transformers": "5.17",
    "accelerate": "1.15",
    "peft": "0.21",
    "bitsandbytes": "0.50",
    "deepspeed": "0.19",
    "liger-kernel": "0.8",
}


LOSSES = {
    "full": "the model's own loss over all logits",
    "logprobs": "log probabilities from all logits in fp32",
    "softmax": "log probabilities from all logits in fp32, and their log-softmax",
    "kernel": "log probabilities from all logits in fp32, by a kernel",
    "checkpointed": "the loss in recomputed chunks of tokens",
    "tiled": "the loss in tiles, never all logits",
    "divergence": "a divergence from the teacher over all logits of both in fp32",
    "score": "a score for each text, no logits",
    "value": "a score for each text beside logits that nobody asks for",
}


class Tier(NamedTuple):
    """How to answer: analytic, trace or measure; the latter two with a model's config and an interpreter."""

    name: str
    config: Mapping[str, Any]
    python: str


EIGHT_BITS = "products of the layers in FP8 by torchao, not under torch.compile, which fuses the casts"
EIGHT_BITS_ASKED = (
    "by accelerate launch --mixed_precision fp8, the trainer's own bf16 left unset: it would win"
)
"""wheel:transformers-5.17.0:transformers/training_args.py"""
EIGHT_BITS_STEPPED = (
    "without FSDP set ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER=false: else accelerate gives the layers"
    " new weights, which the optimizer that was made before does not step"
)
"""accelerate 1.15 with torchao 0.18: two runs on an H200 kept no states of those weights."""
GROWING = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
USUAL_SHORTEST = 0.35
"""Of the length: the shortest row where nothing is told of the data."""
NOTED = 0.01
"""Shares that are worth a word."""

ANALYTIC = Tier("analytic", {}, "")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a run, the figures of its stack and card, and how to answer; sizes in bytes."""

    run: TrainingRun | ServingRun
    constants: Constants
    gpu_bytes: int | None = None
    stack: Mapping[str, str] = field(default_factory=dict)
    tier: Tier = ANALYTIC
    notes: tuple[str, ...] = ()
    """What was taken for granted."""
    close: bool = True
    """Whether the bound is replayed, or rough and had at once."""


def answer(question: Question) -> Prediction:
    """Return the prediction of the wanted tier.

    Raises InputError for a tier that does not know this kind of run, Unavailable when it cannot run.
    """
    run, constants, tier = question.run, question.constants, question.tier
    prediction = analytic = predict(run, constants, question.close)
    if tier.name != "analytic" and isinstance(run, TrainingRun) and run.amp == "fp8":
        raise InputError("--amp fp8: is counted, neither traced nor measured")
    if isinstance(run, ServingRun):
        if tier.name != "analytic":
            raise InputError("--trace and --measure are for training runs")
        return _assuming(prediction, question, analytic)
    if tier.name == "trace":
        from envdoctor.memory.trace import trace_run

        prediction = trace_run(run, tier.config, prediction, constants, tier.python)
    elif tier.name == "measure":
        from envdoctor.memory.measure import measure_run

        prediction = measure_run(run, tier.config, prediction, constants, tier.python)
    if run.vllm_utilization is not None:
        from envdoctor.memory.grpo import add_engine

        prediction = add_engine(run, prediction, question.gpu_bytes, constants)
    return _assuming(prediction, question, analytic)


def _assuming(prediction: Prediction, question: Question, analytic: Prediction) -> Prediction:
    run, stack = question.run, question.stack
    total, active = parameters(run.shape), active_parameters(run.shape)
    used = f", {active / 1e9:.2f} active" if active < total else ""
    notes = [f"{total / 1e9:.2f} billion parameters{used}"] if run.shape.known else []
    if isinstance(run, TrainingRun):
        notes += [_taken(name, stack.get(name)) for name in _libraries(run)]
        notes += [_trainer_note(run, stack)]
        notes += _method_notes(run)
        notes += _row_notes(question, analytic)
        notes += _host_note(run)
        notes += _image_note(run)
        if run.seq > run.shape.positions:
            beyond = f"--seq {run.seq} lies beyond the {run.shape.positions} positions of {run.shape.name}"
            notes.insert(0, f"{beyond}: it needs its rotary embedding scaled")
    return replace(prediction, assumptions=(*question.notes, *notes, *prediction.assumptions))


def _row_notes(question: Question, even: Prediction) -> list[str]:
    """Which lengths of rows the figures are for, and what rows of unlike length would take."""
    run = question.run
    assert isinstance(run, TrainingRun)
    if run.uneven:
        lies = f"rows of {run.shortest_row} to {run.seq} tokens, filled up to the longest of their batch"
        return [
            lies if run.expandable_segments else f"{lies} ({GROWING} reserves little more than is needed)"
        ]
    notes = ["every row as long as --seq"]
    shortest = int(run.seq * USUAL_SHORTEST)
    if run.packed or run.images or run.shares > 1 or not shortest:
        return notes
    told = f"with shorter ones among them, torch may reserve more than that: --shortest-row {shortest} tells"
    padded = predict(replace(run, shortest_row=shortest), question.constants, close=False)
    more = padded.peak_allocated_bytes / even.peak_allocated_bytes - 1
    masks = f", and masks take {more:.0%} more" if more >= NOTED else ""
    return [*notes, f"{told}{masks}"]


def _method_notes(run: TrainingRun) -> list[str]:
    """What is trained where that is neither all nor LoRA's factors, and what the optimizer keeps instead."""
    notes, some = [], run.active_layers
    told = {
        "last": f"the last {some} of {run.shape.layers} layers are trained",
        "first": f"a layer of {run.shape.layers} is trained at a time, in fp32 copies; the first needs most",
        "drawn": f"{some} of {run.shape.layers} layers are trained at a time, and all keep their states once"
        " drawn",
    }
    notes += [told[run.trains.layers]] if run.trains.layers in told else []
    notes += [f"{run.virtual} virtual tokens are trained (--virtual-tokens)"] if run.virtual else []
    optimizer = find_optimizer(run.optim)
    if optimizer.rank:
        rank = run.optim_rank or optimizer.rank
        notes.append(f"gradients of the layers' linears are projected to rank {rank} (--optim-rank)")
    notes += ["each weight is stepped as soon as its gradient is there"] if optimizer.layerwise else []
    if run.amp == "fp8":
        notes.append(EIGHT_BITS)
        if run.trainer != "axolotl":
            notes += [EIGHT_BITS_ASKED, *([EIGHT_BITS_STEPPED] if run.trains.layers else [])]
    notes += ["layers' inputs lie in host memory but for five"] if run.offload_activations else []
    return notes


def _host_note(run: TrainingRun) -> list[str]:
    """How much host memory what is offloaded needs."""
    if not run.offload_optimizer and not run.offload_params:
        return []
    s = settings_of(run)
    total = parameters(run.shape)
    added = (*adapter_tensors(run.shape, s), *copied_tensors(run.shape, s))
    trained = total if s.trains else sum(n * count for n, count in added)
    host = host_bytes(total, trained, run.offload_optimizer, run.offload_params)
    return [f"what is offloaded needs about {host / GIB:.0f} GiB of host memory over all ranks"]


def _image_note(run: TrainingRun) -> list[str]:
    """How many tokens and patches the images of a row are, and whether their tower is trained."""
    v = run.shape.vision
    if v is None or not run.images:
        return []
    height, width = v.sides(run.pixels)
    each = f"{v.tokens(height, width)} tokens of --seq, {v.patches(height, width)} rows of the tower"
    tower = "frozen" if run.frozen_tower else "trained" if run.trains.outer else "adapted where named"
    return [f"{run.images} images a row, each {height}x{width} pixels: {each}, which is {tower}"]


def _taken(name: str, version: str | None) -> str:
    """What a library is taken to do: as the release that was measured, of which another may differ."""
    known = MODELLED[name]
    if version is None or version.split("+")[0].split(".")[:2] == known.split("."):
        return f"{name} {version or known}: as modelled"
    return f"{name} {version}: taken to allocate as {known} does, on which this was measured"


def _trainer_note(run: TrainingRun, stack: Mapping[str, str]) -> str:
    """Whose step it is, of which release, and what of it decides memory."""
    recipe = run.recipe
    said = f"{run.trainer} {stack.get(TRAINERS[run.trainer]) or '(its newest release read)'}, {run.task}"
    parts = [LOSSES[recipe.loss]] if not (run.liger and recipe.loss == "full") else ["Liger's fused loss"]
    parts += ["two texts a row"] if recipe.texts > 1 else []
    if run.teacher:
        parts.append(f"{run.teacher.name} as teacher")
    elif recipe.reference:
        second = "a second model as reference" + (", in fp32" if recipe.reference_fp32 else "")
        parts.append(second if run.trains.layers else "adapters off as reference")
    if recipe.scored == "completion":
        parts.append(f"{run.completion} tokens of a row are answer")
    if recipe.scored == "answers":
        told = f"{run.completion} of a row" if run.max_completion else "taken for whole rows"
        parts.append(f"logits of answers alone, {told} (--max-completion)")
    if recipe.generates:
        parts.append("vLLM writes" if run.vllm_utilization is not None else "transformers' generate writes")
    parts += ["trained weights widened to fp32"] if recipe.full_fp32 and run.method == "full" else []
    return f"{said}: {', '.join(parts)}"


def _libraries(run: TrainingRun) -> list[str]:
    """The libraries that this run uses."""
    used = ["torch", "transformers", "accelerate"]
    used += ["peft"] if not run.trains.layers else []
    used += ["bitsandbytes"] if run.method == "qlora" else []
    used += ["deepspeed"] if run.parallel.startswith("zero") else []
    used += ["liger-kernel"] if run.liger else []
    return used
