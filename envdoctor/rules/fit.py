"""Does what the run needs fit the card? Weights alone, a whole training step, a serving engine's budget."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import Gpu
from envdoctor.facts.quantities import GIB, whole_number
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View, quoted
from envdoctor.values import dataclass

SOURCE = "https://huggingface.co/docs/transformers/main/en/model_memory_anatomy"
_OOM = re.compile(r"SYM-(CUDA-OOM|OOM-)")
_LOADED = re.compile(r"SYM-(SAMPLER-WARMUP|NO-CACHE-BLOCKS)")
"""Said by an engine that has its weights on the cards already."""
_PARAMETERS = re.compile(r"(?<![\d.a-z])(\d{1,3}(?:\.\d{1,2})?)\s?b(?![a-z0-9])", re.IGNORECASE)
_MIXTURE = re.compile(r"(\d)x(\d{1,2})b", re.IGNORECASE)
_ADAM = re.compile(r"^(paged_)?adamw?(_torch|_hf|_apex)?(_fused|_32bit)?$")
_QUARTER, _HALF = 0.56, 1.05
_TRAINED = (2.0, 2.0, 12.0)
"""Bytes a parameter in mixed precision with AdamW: weights, gradients, states (fp32 copy, two moments)."""
_IN_FOUR = re.compile(
    r"nf4|fp4|int4|4[-_ ]?bits?\b|awq|gptq|hqq|aqlm|w4a\d|bnb|bitsandbytes|auto-?round|exl[23]"
    r"|\bi?q[1-4]_|\bgguf\b|\b4\b"
)
"""Four bits a weight, or a method of several widths, taken at the least that is usual."""
_IN_EIGHT = re.compile(r"int8|fp8|8[-_ ]?bits?\b|w8a\d|\bq[5-8]_|quanto|\b8\b")
_PLAIN = frozenset(("", "none", "null", "false", "no", "off", "0"))
_RUN_KEYS = (
    "zero_stage",
    "method",
    "batch",
    "seq",
    "quant",
    "fsdp",
    "deepspeed",
    "tp",
    "vllm_utilization",
    "lora_rank",
)
_CROWDED = 0.75
"""The share of a card from which on weights leave too little for what else a run that ran out needs."""
_USABLE = 0.97
"""The share of a card that is left beside the CUDA context."""
_SHARDS = ("zero_stage", "fsdp", "tp", "pp", "parallel", "device_map", "offload_params", "model_parallel")
"""Settings that say how several cards share a model."""
_SPREAD = ("auto", "balanced", "balanced_low_0", "sequential")
"""Device maps that lay a model's layers over all cards (accelerate's big-model loading)."""


@dataclass(frozen=True, slots=True)
class WeightsOnCard:
    """The weights that one card must hold, in bytes, beside its memory."""

    model: str
    parameters: float
    bytes_each: float
    shards: int
    gpu: Gpu
    card_bytes: int

    @property
    def quantised(self) -> bool:
        """True where a weight takes less than two bytes already."""
        return self.bytes_each < 2

    @property
    def needed(self) -> float:
        """Bytes of weights on each card."""
        return self.parameters * self.bytes_each / self.shards


def check_weights(view: View) -> Iterable[Finding]:
    """Find a model whose weights alone pass the card's memory."""
    seen = [s for s in view.facts.symptoms if _OOM.match(s.id)]
    if not seen and not any(view.facts.setting(key) for key in _RUN_KEYS):
        raise Skip("no run is told")
    if any(_LOADED.match(s.id) for s in view.facts.symptoms):
        raise Skip("the engine had loaded its weights when it gave up")
    weights = _weights(view)
    over = weights.needed > weights.card_bytes * _USABLE
    if not over and not (seen and weights.needed > weights.card_bytes * _CROWDED):
        return
    told = view.facts.setting("quant") or view.facts.setting("method")
    sure = over and told is not None and told.native_key is not None and sharding_told(view)
    model = view.facts.setting("model")
    evidence = [Evidence("model", weights.model, model.source if model else "")]
    evidence.append(Evidence("gpu memory", f"{weights.card_bytes / GIB:.1f} GiB", weights.gpu.source))
    yield Finding(
        id="MEM-WEIGHTS",
        severity=Severity.ERROR if seen or sure else Severity.WARNING,
        summary=_no_room(weights) if over else _little_room(weights),
        cause=(
            f"{weights.parameters / 1e9:g} billion parameters at {weights.bytes_each:g} bytes"
            + (
                f" over {weights.shards} cards"
                if weights.shards > 1
                else ", not sharded: every card holds all of them"
            )
            + (
                ". Replicas do not split them, tensor and pipeline parallelism do."
                if _serves(view)
                else ". Data parallelism, ZeRO-1 and ZeRO-2 do not shard the weights."
            )
        ),
        evidence=(*evidence, *quoted(seen)),
        remedies=tuple(_weight_remedies(view, weights)),
        certainty=Certainty.CERTAIN if sure else Certainty.LIKELY,
        sources=(SOURCE,),
        explains=tuple(dict.fromkeys(s.id for s in seen)),
        prior=0.97 if over else 0.88,
    )


_PLAINLY = "quantise or shard them (more cards under data parallel lower nothing)"
_IN_BITS = (
    "they are quantised already (QLoRA): shorter rows (max_length, cutoff_len, max_seq_length) or a larger"
    " card help; FSDP and ZeRO-3 shard them only where bnb_4bit_quant_storage is the compute dtype, ZeRO-2"
    " and its offload never"
)
"""What makes room beside weights: https://huggingface.co/docs/peft/accelerate/deepspeed."""


def _no_room(weights: WeightsOnCard) -> str:
    return (
        f"{weights.model} cannot fit: weights alone take {weights.needed / GIB:.0f} GiB on each card of"
        f" {weights.card_bytes / GIB:.0f} GiB; no batch size or length helps, only sharding or quantising"
    )


def _little_room(weights: WeightsOnCard) -> str:
    left = (weights.card_bytes - weights.needed) / GIB
    return (
        f"the weights of {weights.model} take {weights.needed / GIB:.1f} of the card's"
        f" {weights.card_bytes / GIB:.0f} GiB: {left:.1f} GiB are left for the CUDA context, activations,"
        f" adapters or the KV cache; {_IN_BITS if weights.quantised else _PLAINLY}"
    )


def _weights(view: View) -> WeightsOnCard:
    setting = view.facts.setting("model")
    if setting is None:
        raise Skip("the model is not told")
    parameters = parameters_of(setting.value)
    if parameters is None:
        raise Skip(f"{setting.value[:60]}: its size is not known")
    gpus = [gpu for gpu in view.gpus.get() or () if gpu.memory_total_bytes]
    if not gpus:
        raise Skip("the card's memory is not known")
    smallest = min(gpus, key=lambda gpu: gpu.memory_total_bytes or 0)
    return WeightsOnCard(
        setting.value,
        parameters,
        _bytes_each(view, setting.value),
        _shards(view, len(gpus)),
        smallest,
        smallest.memory_total_bytes or 0,
    )


def parameters_of(model: str) -> float | None:
    """Return the parameters that a model's name states (`Llama-2-13b`, `Mixtral-8x7B`), or None."""
    if mixture := _MIXTURE.search(model):
        return int(mixture[1]) * float(mixture[2]) * 0.83e9
    found = _PARAMETERS.findall(model.replace("_", "-").replace("-", " "))
    return float(found[0]) * 1e9 if found else None


def _bytes_each(view: View, model: str) -> float:
    quant, method = view.facts.setting("quant"), view.facts.setting("method")
    told = quant.value.lower() if quant else ""
    if told in _PLAIN and method and method.value.lower() == "qlora":
        return _QUARTER
    for text in (told, model.lower()):
        if _IN_FOUR.search(text):
            return _QUARTER
        if _IN_EIGHT.search(text):
            return _HALF
    if told not in _PLAIN:
        raise Skip(f"how many bytes a weight takes by {told[:30]} is not known")
    if stored := _stored(view, model):
        return stored
    dtype = view.facts.setting("dtype")
    return 4 if dtype and dtype.value.lower() in ("fp32", "float32") else 2


def _stored(view: View, model: str) -> float | None:
    """Return the bytes of a weight that an engine loads as it is stored; None for a plain or unknown one."""
    if not _serves(view) and not any(setting.framework == "vllm" for setting in view.facts.settings):
        return None
    from envdoctor.memory import parse_shape
    from envdoctor.memory.catalogue import catalogue_config
    from envdoctor.memory.extras import STORED_BYTES

    config = catalogue_config(model)
    return STORED_BYTES.get(parse_shape(config, model).stored) if config else None


def _shards(view: View, cards: int) -> int:
    shards = 1
    for key in ("tp", "pp"):
        split = view.facts.setting(key)
        shards *= (whole_number(split.value) if split else None) or 1
    device_map = view.facts.setting("device_map")
    if way_of_sharding(view) in ("zero3", "fsdp") or (device_map and device_map.value in _SPREAD):
        return max(shards, cards)
    if _serves(view) and view.facts.setting("tp") is None:
        return max(shards, cards)  # what is not told is taken at its best
    offloaded = view.facts.setting("offload_params")
    return 1000 if offloaded else max(1, shards)


def way_of_sharding(view: View) -> str:
    """Return how several cards share a training's states: `zero1` to `zero3`, `fsdp`, or empty."""
    stage, fsdp = view.facts.setting("zero_stage"), view.facts.setting("fsdp")
    if stage and stage.value[:1] in ("1", "2", "3"):
        return f"zero{stage.value[0]}"
    way = view.facts.setting("parallel")
    named = way is not None and way.value.lower() == "fsdp"
    return "fsdp" if named or (fsdp and fsdp.value.lower() not in ("false", "0", "")) else ""


_ENGINES_SPLIT = ("tensor-parallel-size", "tp-size", "num-shard")
"""How serving engines call the number of cards that they split a model over; trainers have other words."""


def sharding_told(view: View) -> bool:
    """True where there is one card, or a setting says how several share a model (an excerpt may not)."""
    return len(view.gpus.get() or ()) < 2 or any(view.facts.setting(key) for key in _SHARDS)


def _serves(view: View) -> bool:
    """True for an engine that splits a model over cards by a setting of its own."""
    told = view.facts.setting("tp")
    of_engine = told is not None and (told.native_key or "").replace("_", "-").lstrip("-") in _ENGINES_SPLIT
    return of_engine or any(view.facts.distribution(name) for name in ("vllm", "sglang"))


def _weight_remedies(view: View, weights: WeightsOnCard) -> Iterable[Remedy]:
    if _serves(view):
        yield from _served_smaller(view, weights)
    else:
        yield from _trained_smaller(view, weights)
    yield Remedy("Use a smaller model, a larger card or more of them; `envdoctor profile` shows what fits.")


def _served_smaller(view: View, weights: WeightsOnCard) -> Iterable[Remedy]:
    cards = len(view.gpus.get() or ())
    room = weights.card_bytes * 0.8
    half, quarter = (weights.parameters * each / weights.shards for each in (_HALF, _QUARTER))
    if weights.bytes_each > _HALF and half < room:
        yield Remedy(
            f"Serve a copy of the model whose weights are stored in FP8 ({half / GIB:.0f} GiB a card)"
            f" or in 4 bit (AWQ, GPTQ: {quarter / GIB:.0f} GiB)."
        )
    elif weights.bytes_each > _QUARTER and quarter < room:
        yield Remedy(f"Serve a 4-bit copy of the model (AWQ, GPTQ): {quarter / GIB:.0f} GiB a card.")
    split = weights.parameters * weights.bytes_each / max(1, cards)
    if weights.shards < cards and split < room:
        of_sglang = view.facts.distribution("sglang") and not view.facts.distribution("vllm")
        option = "--tp-size {}" if of_sglang else "--tensor-parallel-size {}"
        yield Remedy(f"Split it over the {cards} cards: {split / GIB:.0f} GiB each.", commands(option, cards))


def _trained_smaller(view: View, weights: WeightsOnCard) -> Iterable[Remedy]:
    cards = len(view.gpus.get() or ())
    sharded = weights.parameters * weights.bytes_each / max(1, cards)
    quarter = weights.parameters * _QUARTER
    if weights.bytes_each > _QUARTER and quarter < weights.card_bytes * 0.8:
        yield Remedy(
            f"Load the weights in 4 bit (QLoRA for training): {quarter / GIB:.0f} GiB.",
            ("--quantization_bit 4   # LLaMA-Factory", "load_in_4bit: true, adapter: qlora   # axolotl"),
        )
    if cards > 1 and weights.shards == 1 and sharded < weights.card_bytes * 0.8:
        yield Remedy(
            f"Shard the weights over the {cards} cards with ZeRO-3 or FSDP: {sharded / GIB:.0f} GiB each.",
            ("--deepspeed ds_z3_config.json",),
        )


def check_full_training(view: View) -> Iterable[Finding]:
    """Find a full fine-tuning whose weights, gradients and Adam moments pass the card's memory."""
    seen = [s for s in view.facts.symptoms if _OOM.match(s.id)]
    method, optim = view.facts.setting("method"), view.facts.setting("optim")
    if method is None or method.value.lower() not in ("full", "full_ft", "fft") or not seen:
        raise Skip("no full fine-tuning that ran out of memory is told")
    if optim and not _ADAM.search(optim.value.lower()):
        raise Skip(f"the states of {optim.value[:40]} are not counted")
    weights = _weights(view)
    cards = max(1, len(view.gpus.get() or ()))
    needed = weights.parameters * _bytes_of_training(view, cards)
    if needed <= weights.card_bytes * _USABLE or weights.needed > weights.card_bytes * _USABLE:
        return
    yield Finding(
        id="MEM-FULL-TRAINING",
        severity=Severity.ERROR,
        summary=(
            f"full fine-tuning of {weights.model} ({weights.parameters / 1e9:g}B parameters) needs about "
            f"{needed / GIB:.0f} GiB a card for weights, gradients and optimizer states; the card has "
            f"{weights.card_bytes / GIB:.0f}"
        ),
        cause=(
            "Mixed-precision training with AdamW keeps 16 bytes a parameter (2 of weights, 2 of gradients, "
            "12 of fp32 master weights and two moments) before any activation; batch size and length change "
            "none of it."
        ),
        evidence=(
            Evidence("model", weights.model, method.source),
            Evidence("gpu memory", f"{weights.card_bytes / GIB:.1f} GiB", weights.gpu.source),
            *quoted(seen),
        ),
        remedies=tuple(_ways_to_train(weights, cards)),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=tuple(dict.fromkeys(s.id for s in seen)),
        prior=0.96,
    )


def _ways_to_train(weights: WeightsOnCard, cards: int) -> Iterable[Remedy]:
    """Yield the ways out, first the one that trains all of the model on the cards that are there."""
    each = weights.parameters * sum(_TRAINED) / cards
    if cards > 1 and each <= weights.card_bytes * _USABLE:
        yield Remedy(
            f"Shard all of it over the {cards} cards with ZeRO-3 or FSDP: {each / GIB:.0f} GiB each,"
            " activations aside.",
            ("--deepspeed ds_z3_config.json",),
        )
    yield Remedy(
        "Train adapters instead: LoRA, or QLoRA on 4-bit weights.",
        ("finetuning_type: lora   # LLaMA-Factory", "--use_peft --lora_r 16   # trl"),
    )
    yield Remedy("Shard over more cards with ZeRO-3 or FSDP, or offload the optimizer to the CPU.")
    yield Remedy("Pure bf16 weights with an 8-bit optimizer.", ("--optim paged_adamw_8bit",))


def _bytes_of_training(view: View, cards: int) -> float:
    """Bytes a parameter on each card: weights, gradients and states, as far as ZeRO or FSDP shard them."""
    level = {"zero1": 1, "zero2": 2, "zero3": 3, "fsdp": 3}.get(way_of_sharding(view), 0)
    weights, gradients, states = _TRAINED
    if view.facts.setting("offload_optimizer") or view.facts.setting("offload"):
        states = 0.0
    held = (weights, gradients, states)
    sharded = (level >= 3, level >= 2, level >= 1)
    return sum(size / cards if split else size for size, split in zip(held, sharded, strict=True))


RULES = (
    Rule("MEM-WEIGHTS", "the model's weights fit the card", check_weights, SOURCE),
    Rule("MEM-FULL-TRAINING", "a full fine-tuning's states fit the card", check_full_training, SOURCE),
)
