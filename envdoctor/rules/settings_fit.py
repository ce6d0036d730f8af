"""Training runs that settings state and that cannot fit the card: predicted, not guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from envdoctor.commands import commands
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import NOT_JUDGED, TOLD_CAUSE, TOLD_WAY, Gpu, Setting
from envdoctor.facts.quantities import GIB, whole_number
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.gpus import edition_bytes
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.fit import sharding_told, way_of_sharding
from envdoctor.rules.variables import ALLOCATORS
from envdoctor.rules.view import View
from envdoctor.values import dataclass

if TYPE_CHECKING:  # the memory room is imported when a run is judged, not when rules are listed
    from envdoctor.memory import Constants, ModelShape, Prediction, TrainingRun
    from envdoctor.memory.recipes import Recipe

SOURCE = "https://huggingface.co/docs/transformers/main/en/model_memory_anatomy"
_DRIVER_SHARE = 0.985
"""What CUDA offers of the memory that NVML reports."""
_STATED = ("batch", "seq", "method", "grad_ckpt", "optim", "zero_stage", "quant", "attn")
_SHOWN = (*_STATED, "lora_rank", "fsdp", "liger", "offload_optimizer", "offload_params")


@dataclass(frozen=True, slots=True)
class OneCard:
    """The smallest card, its bytes that CUDA offers, how many there are, and the constants for it.

    `largest` are the bytes of the largest edition of a name that may mean several.
    """

    gpu: Gpu
    usable: int
    count: int
    constants: Constants
    largest: int = 0


def check_training(view: View) -> Iterable[Finding]:
    """Find a training run whose predicted peak passes the card."""
    run, card = stated_run(view)
    from envdoctor.memory import predict

    prediction = predict(run, card.constants, close=False)
    if prediction.device_bytes <= card.usable:
        return
    passed = _passes(prediction, card)
    if not passed:  # the close bound takes longer, and is asked for where it decides
        prediction = predict(run, card.constants)
        if prediction.device_bytes <= card.usable:
            return
    certain = passed and not _fits_in_chunks(view, run, card)
    if not certain and not view.shows_failure:
        yield from _tight(view, card, prediction)
        return
    certain = certain and (bool(_oom(view)) or (sharding_told(view) and not _is_of_another_trouble(view)))
    yield _too_large(view, card, run, prediction, certain)


def _passes(prediction: Prediction, card: OneCard) -> bool:
    """True where what is allocated alone passes the card."""
    return prediction.peak_allocated_bytes + card.constants.cuda_context > card.usable


def _is_of_another_trouble(view: View) -> bool:
    """True where a person writes of a run and of no memory that ran out: its rows may be shorter."""
    written = any(note.startswith((NOT_JUDGED, TOLD_CAUSE, TOLD_WAY)) for note in view.facts.notes)
    return (written or bool(view.facts.errors)) and not _oom(view)


def _fits_in_chunks(view: View, run: TrainingRun, card: OneCard) -> bool:
    """True where no trainer is told and the run would fit with TRL's loss, which never holds all logits."""
    from envdoctor.memory import predict
    from envdoctor.memory.recipes import recipe_of

    if run.trainer != "transformers":
        return False
    recipe = recipe_of(view.matrix.rows(tables.TrainerRow), "trl", "sft", _versions(view))
    return not _passes(predict(replace(run, recipe=recipe), card.constants, close=False), card)


def stated_run(view: View) -> tuple[TrainingRun, OneCard]:
    """Return the run that settings state and the card that it must fit; raises Skip."""
    shape, card = shape_of(view), card_of(view)
    return _training_run(view, shape, card), card


def run_of_trainer(run: TrainingRun, trainer: str | None, matrix: Matrix) -> TrainingRun:
    """Return the run as that trainer's newest release makes it, where its settings tell none themselves."""
    from envdoctor.memory.recipes import recipe_of

    if trainer is None or run.trainer != "transformers":
        return run
    return replace(run, trainer=trainer, recipe=recipe_of(matrix.rows(tables.TrainerRow), trainer, "sft", {}))


def _too_large(view: View, card: OneCard, run: TrainingRun, prediction: Prediction, certain: bool) -> Finding:
    need = prediction.peak_allocated_bytes + card.constants.cuda_context
    largest = sorted(prediction.components, key=lambda c: -c.bytes)[:3]
    parts = ", ".join(f"{c.name} {c.bytes / GIB:.1f}" for c in largest)
    return Finding(
        id="MEM-RUN",
        severity=Severity.ERROR if certain else Severity.WARNING,
        summary=(
            f"{run.method} of {run.shape.name} at batch {run.batch} and length {run.seq} needs about"
            f" {need / GIB:.1f} GiB on each card of {card.usable / GIB:.1f}, most in {prediction.phase}"
        ),
        cause=f"Predicted parts of the peak in GiB: {parts}. {_assumed(view)}",
        evidence=tuple(_evidence(view, card)),
        remedies=tuple(_training_remedies(view, run, card)),
        certainty=Certainty.CERTAIN
        if certain and sharding_told(view) and not prediction.uncertain
        else Certainty.LIKELY,
        sources=(SOURCE,),
        explains=_oom(view),
        prior=0.9,
        follows=("MEM-WEIGHTS",),
    )


def _oom(view: View) -> tuple[str, ...]:
    return tuple(s.id for s in view.facts.symptoms if "OOM" in s.id)


def _tight(view: View, card: OneCard, prediction: Prediction) -> Iterable[Finding]:
    bound = prediction.device_bytes / GIB
    yield Finding(
        id="MEM-RUN-TIGHT",
        severity=Severity.WARNING,
        summary=f"the run may take up to {bound:.1f} GiB of {card.usable / GIB:.1f} and run out",
        cause="The expected peak fits, its upper bound with fragmentation does not.",
        evidence=tuple(_evidence(view, card)),
        remedies=(Remedy("Let `envdoctor profile` choose a setting whose bound fits."),),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
    )


def _assumed(view: View) -> str:
    missing = [key for key in ("batch", "seq", "grad_ckpt") if view.facts.setting(key) is None]
    return f"Not told, so the framework's usual: {', '.join(missing)}." if missing else ""


def _evidence(view: View, card: OneCard) -> Iterable[Evidence]:
    found = [s for key in ("model", *_SHOWN) if (s := view.facts.setting(key))]
    yield from (Evidence(s.native_key or s.key, s.value, s.source) for s in found)
    named = f" ({card.gpu.name})" if card.gpu.name else ""
    yield Evidence("gpu memory", f"{card.usable / GIB:.1f} GiB{named}", card.gpu.source)


def _training_remedies(view: View, run: TrainingRun, card: OneCard) -> Iterable[Remedy]:
    """Single changes that make the expected run fit, tried in order of what they cost in speed."""
    changes: list[tuple[str, Mapping[str, object]]] = [
        ("Batch size 1 and gradient accumulation for the same global batch", {"batch": 1}),
        ("Gradient checkpointing", {"grad_ckpt": True, "batch": 1}),
        (
            "QLoRA: 4-bit weights, adapters and checkpointing",
            {"method": "qlora", "grad_ckpt": True, "batch": 1, **_unsharded(run, card)},
        ),
    ]
    if card.count > 1:
        sharded: dict[str, object] = {"parallel": "zero3", "grad_ckpt": True, "batch": 1}
        over = f"ZeRO-3 over the {card.count} cards, with checkpointing"
        changes.append((over, sharded))
        changes.append((f"{over}, optimizer states in host memory", {**sharded, "offload_optimizer": True}))
    tried: set[TrainingRun] = {run}
    for text, change in changes:
        prediction = _changed(run, change, card, tried)
        if prediction is not None:
            yield Remedy(f"{text}: at most {prediction.device_bytes / GIB:.1f} GiB.")
    count = f" --gpus {card.count}" if card.count > 1 else ""
    yield Remedy(
        "Let `envdoctor profile` choose and write a setting that fits.",
        commands(
            f"envdoctor profile --model {{}} --gpu {{}}{count} --seq {{}}",
            run.shape.name,
            card.gpu.name or "NAME",
            run.seq,
        ),
    )


def _unsharded(run: TrainingRun, card: OneCard) -> Mapping[str, object]:
    """Return whole weights on every card where they were sharded: 4-bit ones are refused by ZeRO-3."""
    return {"parallel": "ddp" if card.count > 1 else "none"} if run.parallel == "zero3" else {}


def _changed(
    run: TrainingRun, change: Mapping[str, object], card: OneCard, tried: set[TrainingRun]
) -> Prediction | None:
    """Return the prediction of a changed run; None for one that cannot be, does not fit, or was tried."""
    from envdoctor.memory import predict

    try:
        changed = replace(run, **change)  # type: ignore[arg-type]
    except EnvdoctorError:
        return None
    if changed in tried:
        return None
    tried.add(changed)
    if _passes(predict(changed, card.constants, close=False), card):
        return None
    prediction = predict(changed, card.constants)
    return prediction if prediction.device_bytes <= card.usable else None


def card_of(view: View) -> OneCard:
    """Return the smallest card that is told; raises Skip."""
    gpus = [gpu for gpu in view.gpus.get() or () if gpu.memory_total_bytes]
    if not gpus:
        raise Skip("the card's memory is not known")
    gpu = min(gpus, key=lambda g: g.memory_total_bytes or 0)
    return _one_card(view, gpu, len(gpus))


def edition_of(view: View) -> OneCard:
    """Return the smallest card that is told, of a name that may mean several the smallest; raises Skip."""
    sized = [(one, gpu) for gpu in view.gpus.get() or () if (one := edition_bytes(view.matrix, gpu))]
    if not sized:
        raise Skip("the card's memory is not known")
    least, gpu = min(sized, key=lambda pair: pair[0][0])
    card = _one_card(view, replace(gpu, memory_total_bytes=least[0]), len(sized))
    return replace(card, largest=least[-1] if len(least) > 1 else 0)


def _one_card(view: View, gpu: Gpu, seen: int) -> OneCard:
    from envdoctor.memory import read_constants

    capability = gpu.compute_capability
    pair = (capability.major, capability.minor) if capability else None
    constants = read_constants(view.matrix.rows(tables.MemoryRow), _versions(view), pair)
    count = max(seen, number_of(view, "gpus", 1))  # one named card may stand for all of a run's
    return OneCard(gpu, int((gpu.memory_total_bytes or 0) * _DRIVER_SHARE), count, constants)


def shape_of(view: View) -> ModelShape:
    """Return the shape of the model that the settings name, from the catalogue alone; raises Skip."""
    setting = view.facts.setting("model")
    if setting is None:
        raise Skip("the model is not told")
    from envdoctor.memory import parse_shape
    from envdoctor.memory.catalogue import catalogue_config, catalogue_name

    config = catalogue_config(setting.value)
    if config is None:
        raise Skip(f"{setting.value[:60]}: its shape is not in the catalogue")
    shape = parse_shape(config, setting.value)
    if not shape.known:
        raise Skip(f"model type {shape.model_type} is not known")
    return replace(shape, name=catalogue_name(setting.value))


def value_of(view: View, key: str) -> str | None:
    """Return what the settings say of a key."""
    setting = view.facts.setting(key)
    return setting.value if setting else None


def number_of(view: View, key: str, otherwise: int) -> int:
    """Return a setting's whole number; `otherwise` where it has none."""
    return whole_number(value_of(view, key)) or otherwise


def _training_run(view: View, shape: ModelShape, card: OneCard) -> TrainingRun:
    from envdoctor.memory import TrainingRun

    task = value_of(view, "task")
    if task not in (None, "sft", "pt"):
        raise Skip(f"a {task} run is not predicted from a file")
    if sum(view.facts.setting(key) is not None for key in _STATED) < 3 or not value_of(view, "batch"):
        raise Skip("no training run is told")
    if (split := _split(view)) is not None:
        told = f"{split.native_key or split.key} {split.value}"
        raise Skip(f"{told}: a model that cards share in this way is not predicted from a file")
    method = _method(view)
    parallel = _parallel(view, card)
    trainer, recipe = _trainer(view)
    try:
        return TrainingRun(
            shape,
            method,
            trainer=trainer,
            recipe=recipe,
            batch=number_of(view, "batch", 1),
            seq=number_of(view, "seq", _usual_length(view)),
            grad_accum=number_of(view, "grad_accum", 1),
            dtype=_loaded(view, method),
            amp=_amp(view),
            optim=_optim(view),
            grad_ckpt=value_of(view, "grad_ckpt") != "false",
            attn=_attention(view),
            liger=value_of(view, "liger") == "true",
            lora_rank=number_of(view, "lora_rank", 8),
            gpus=1 if parallel == "none" else card.count,
            parallel=parallel,
            offload_optimizer=parallel != "ddp" and value_of(view, "offload_optimizer") == "true",
            offload_params=parallel in ("zero3", "fsdp") and value_of(view, "offload_params") == "true",
            expandable_segments=recipe.expandable_segments or _grows(view),
        )
    except EnvdoctorError as error:
        raise Skip(f"the run cannot be predicted: {error}") from None


def _grows(view: View) -> bool:
    """True where torch's segments grow, as a variable says."""
    return any("expandable_segments:True" in view.facts.variables.get(name, "") for name in ALLOCATORS)


def _trainer(view: View) -> tuple[str, Recipe]:
    """Whose step it is, by the framework whose settings these are, and what its release does in one."""
    from envdoctor.memory.recipes import recipe_of

    named = (row for s in view.facts.settings if (row := view.matrix.frameworks.get(s.framework or "")))
    trainer = next((row.name for row in named if row.length), "transformers")
    rows = view.matrix.rows(tables.TrainerRow)
    return trainer, recipe_of(rows, trainer, "sft", _versions(view))


def _versions(view: View) -> dict[str, str]:
    return {n: d.version for n, d in view.facts.environment.distributions.items() if d.version}


def _optim(view: View) -> str:
    """The optimizer that a switch of its own turns on, of two the layerwise one; else by its name."""
    told = [s for s in view.facts.settings if s.key == "optim"]
    switched = [s.value for s in told if (s.native_key or "optim").rpartition(".")[2] != "optim"]
    return max(switched, key=len, default=value_of(view, "optim") or "adamw_torch_fused")


def _amp(view: View) -> str:
    if value_of(view, "pure_bf16") == "true":
        return "none"
    return "fp16" if value_of(view, "fp16") == "true" else "bf16"


def _split(view: View) -> Setting | None:
    """The setting by which cards share a model or a sequence otherwise than by ZeRO, FSDP or copies."""
    ways = ("tp", "pp", "model_parallel")
    return next((s for s in view.facts.settings if s.key in ways and (whole_number(s.value) or 0) > 1), None)


def _loaded(view: View, method: str) -> str:
    """The weights' dtype: as told, else 16 bit for adapters, and for full fine-tuning in bf16."""
    told = value_of(view, "dtype")
    if told in ("bf16", "fp16", "fp32"):
        return told
    low = "true" in (value_of(view, "bf16"), value_of(view, "pure_bf16"))
    return "bf16" if method != "full" or low else "fp32"


def _method(view: View) -> str:
    method, quant = value_of(view, "method"), value_of(view, "quant")
    blockwise = any(s.key == "method" and s.value == "badam" for s in view.facts.settings)
    if quant in ("int8", "fp8") or method in ("freeze", "oft") or blockwise:
        raise Skip("that way of training is not predicted from a file")
    if quant is not None and method == "full":
        raise Skip("weights in few bits are not trained themselves: such a run is refused")
    if quant is not None or method == "qlora":
        return "qlora"
    adapters = view.facts.setting("lora_rank") or view.facts.setting("lora_targets")
    return method if method in ("lora", "full") else "lora" if adapters else "full"


def _usual_length(view: View) -> int:
    named = (view.matrix.frameworks.get(s.framework or "") for s in view.facts.settings)
    return next((row.length for row in named if row and row.length), 1024)


def _attention(view: View) -> str:
    value = value_of(view, "attn") or "sdpa"
    return value if value in ("eager", "flash_attention_2") else "sdpa"


def _parallel(view: View, card: OneCard) -> str:
    way = way_of_sharding(view)
    if card.count == 1 and not way.startswith("zero"):
        return "none"
    return way or "ddp"


RULES = (Rule("MEM-RUN", "the stated training run fits the card", check_training, SOURCE),)
