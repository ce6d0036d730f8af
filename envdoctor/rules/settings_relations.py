"""Settings each allowed and wrong together: numbers at odds with each other, the cards or the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from envdoctor.facts import Setting
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.patterns import glob_matches
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.settings_fit import shape_of
from envdoctor.rules.view import View
from envdoctor.values import dataclass

if TYPE_CHECKING:
    from envdoctor.memory import ModelShape

_VLLM = "https://github.com/vllm-project/vllm/blob/main/vllm/config/"
_TRAINER = "https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py"
_ACCELERATE = "https://github.com/huggingface/accelerate/blob/main/src/accelerate/commands/launch.py"


@dataclass(frozen=True, slots=True)
class Relation:
    """Two settings (key patterns), wrong together when `broken` says so; `{a}`, `{b}` are their values."""

    id: str
    first: str
    second: str
    broken: Callable[[float, float], bool]
    severity: Severity
    summary: str
    cause: str
    remedy: str
    source: str


RELATIONS = (
    Relation(
        "SETTING-RELATION-MACHINE-RANK",
        "other.machine_rank",
        "other.num_machines",
        lambda rank, machines: rank >= machines,
        Severity.ERROR,
        "machine_rank {a} of {b} machines: ranks begin at 0",
        "accelerate's file reader takes any two; the launch then waits for a machine that never comes.",
        "Give the machines the ranks 0 to num_machines - 1.",
        _ACCELERATE,
    ),
    Relation(
        "SETTING-RELATION-SEQUENCES",
        "max_num_seqs",
        "max_num_batched_tokens",
        lambda sequences, tokens: sequences > tokens,
        Severity.ERROR,
        "max_num_seqs {a} is more than max_num_batched_tokens {b}: a step cannot hold one token of each",
        "The argument parser takes both; SchedulerConfig refuses them at start.",
        "Raise max_num_batched_tokens or lower max_num_seqs.",
        _VLLM + "scheduler.py",
    ),
    Relation(
        "SETTING-RELATION-COMPLETION",
        "max_completion",
        "max_model_len",
        lambda completion, length: completion > length,
        Severity.WARNING,
        "answers of {a} tokens are cut: max_model_len is {b}",
        "The engine's length counts prompt and answer, and it ends an answer there without a word.",
        "Make max_model_len the longest prompt plus the longest answer.",
        _VLLM + "model.py",
    ),
    Relation(
        "SETTING-RELATION-SERVED-RANK",
        "lora_rank",
        "max_lora_rank",
        lambda rank, most: rank > most,
        Severity.ERROR,
        "adapters of rank {a} cannot be served with max_lora_rank {b}",
        "vLLM sizes its adapter slots by max_lora_rank (16 by default).",
        "Raise max_lora_rank to the adapters' rank.",
        _VLLM + "lora.py",
    ),
    Relation(
        "SETTING-RELATION-WARMUP",
        "other.warmup_steps",
        "other.max_steps",
        lambda warmup, steps: warmup >= steps > 0,
        Severity.WARNING,
        "a warm-up of {a} steps in a run of {b}: the learning rate never reaches its value",
        "The scheduler takes any two numbers.",
        "Warm up for 3 to 10 % of the steps.",
        _TRAINER,
    ),
    Relation(
        "SETTING-RELATION-EVAL",
        "other.eval_steps",
        "other.max_steps",
        lambda every, steps: every > steps > 0,
        Severity.NOTE,
        "evaluation every {a} steps in a run of {b}: it never comes",
        "The trainer takes any two numbers.",
        "Lower eval_steps, or evaluate by epoch.",
        _TRAINER,
    ),
    Relation(
        "SETTING-RELATION-ALPHA",
        "other.*lora_alpha",
        "lora_rank",
        lambda alpha, rank: alpha > 16 * rank > 0,
        Severity.WARNING,
        "lora_alpha {a} over rank {b} multiplies the adapters by more than 16: training is unstable",
        "Their output is scaled by alpha / rank; one to two is usual.",
        "Use the rank or twice the rank.",
        "https://huggingface.co/docs/peft/main/en/developer_guides/lora",
    ),
)


def check_relations(view: View) -> Iterable[Finding]:
    """Find numbers that contradict each other, the cards, or the model."""
    if not view.facts.settings:
        raise Skip("no settings are told")
    for relation in RELATIONS:
        first, second = _number(view, relation.first), _number(view, relation.second)
        if first and second and relation.broken(first[0], second[0]):
            yield _finding(relation, first[1], second[1])
    yield from _cards(view)
    yield from _global_batch(view)
    yield from _model(view)


def _number(view: View, pattern: str) -> tuple[float, Setting] | None:
    for setting in reversed(view.facts.settings):
        if glob_matches(setting.key, pattern):
            try:
                return float(setting.value), setting
            except ValueError:
                return None
    return None


def _evidence(*settings: Setting) -> tuple[Evidence, ...]:
    return tuple(Evidence(s.native_key or s.key, s.value, s.source) for s in settings)


def _finding(relation: Relation, first: Setting, second: Setting) -> Finding:
    return Finding(
        id=relation.id,
        severity=relation.severity,
        summary=relation.summary.format(a=first.value, b=second.value),
        cause=relation.cause,
        evidence=_evidence(first, second),
        remedies=(Remedy(relation.remedy),),
        sources=(relation.source,),
    )


def _cards(view: View) -> Iterator[Finding]:
    """More processes or slices than the machine's cards."""
    gpus = view.gpus.get()
    machines = _number(view, "other.num_machines") or _number(view, "nodes")
    counted = view.facts.origin == "probe" or len(gpus or ()) > 1  # one named card may stand for several
    if not gpus or not counted or (machines and machines[0] > 1):
        return
    for key in ("gpus", "tp", "pp"):
        found = _number(view, key)
        if found and found[0] > len(gpus):
            name = found[1].native_key or key
            yield Finding(
                id="SETTING-RELATION-CARDS",
                severity=Severity.ERROR,
                summary=f"{name} {found[1].value} on a machine of {len(gpus)} GPUs",
                cause="Each process or slice needs a card of its own; no reader of files looks for cards.",
                evidence=_evidence(found[1]),
                remedies=(Remedy(f"Use at most {len(gpus)}, or more machines."),),
                sources=(_ACCELERATE,),
                certainty=Certainty.CERTAIN if view.facts.origin == "probe" else Certainty.LIKELY,
            )


def _global_batch(view: View) -> Iterator[Finding]:
    """DeepSpeed's train_batch_size must be the product of its parts."""
    parts = [_number(view, key) for key in ("global_batch", "batch", "grad_accum", "gpus")]
    if not all(parts):
        return
    numbers = [int(part[0]) for part in parts if part]
    wanted, product = numbers[0], numbers[1] * numbers[2] * numbers[3]
    if wanted != product:
        yield Finding(
            id="SETTING-RELATION-BATCH",
            severity=Severity.ERROR,
            summary=f"train_batch_size {wanted} is not micro batch × accumulation × ranks = {product}",
            cause="DeepSpeed asserts it when training starts; readers of one file cannot see the others.",
            evidence=_evidence(*(part[1] for part in parts if part)),
            remedies=(Remedy(f"Write {product}, or `auto` under transformers."),),
            sources=("https://www.deepspeed.ai/docs/config-json/#batch-size-related-parameters",),
        )


def _model(view: View) -> Iterator[Finding]:
    """Lengths beyond the model's positions, and slices that do not divide its heads.

    Where several models are told, which of them a number is for is not known.
    """
    if len({setting.value for setting in view.facts.settings if setting.key == "model"}) > 1:
        return
    try:
        shape = shape_of(view)
    except Skip:
        return
    yield from _beyond_positions(view, shape)
    split = _number(view, "tp")
    if split and split[0] >= 1 and shape.heads % int(split[0]):
        yield Finding(
            id="SETTING-RELATION-HEADS",
            severity=Severity.ERROR,
            summary=f"{split[1].value} cards cannot share the {shape.heads} heads of {shape.name} evenly",
            cause="Each card takes whole attention heads; the argument parser does not know the model.",
            evidence=_evidence(split[1]),
            remedies=(Remedy(f"Use a divisor of {shape.heads}."),),
            certainty=Certainty.CERTAIN if _is_served(view, split[1]) else Certainty.LIKELY,
            sources=(_VLLM + "model.py",),
        )


def _beyond_positions(view: View, shape: ModelShape) -> Iterator[Finding]:
    """Lengths beyond the positions: learned ones end there, rotary ones go on, and only vLLM refuses them."""
    for key in ("seq", "max_model_len"):
        found = _number(view, key)
        if found is None or found[0] <= shape.positions:
            continue
        served = key == "max_model_len" and _is_served(view, found[1]) and not _is_stretched(view)
        stops = served or bool(shape.learned_positions)
        yield Finding(
            id="SETTING-RELATION-POSITIONS",
            severity=Severity.ERROR if stops else Severity.NOTE,
            summary=f"{key} {found[1].value}: {shape.name} knows {shape.positions} positions",
            cause="A table of learned positions ends there."
            if shape.learned_positions
            else "Rotary angles beyond were never trained; vLLM refuses such a length, trainers do not.",
            evidence=_evidence(found[1]),
            remedies=(Remedy(f"Use at most {shape.positions}, or the model's own rope scaling."),),
            sources=(_VLLM + "model.py",),
        )


def _is_served(view: View, setting: Setting) -> bool:
    task = view.facts.setting("task")
    named = setting.framework == "vllm" or (setting.native_key or "").startswith("vllm_")
    return named or (task is not None and task.value == "serve")


def _is_stretched(view: View) -> bool:
    """True where the run says how positions are scaled, or tells vLLM to take any length."""
    heads = {(s.native_key or "").partition(".")[0].replace("-", "_") for s in view.facts.settings}
    told = bool(heads & {"rope_scaling", "rope_parameters", "hf_overrides"})
    return told or view.facts.variables.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") not in ("", "0")


RULES = (Rule("SETTING-RELATION", "settings agree with each other and the model", check_relations, _TRAINER),)
