"""vLLM's share of a card against what the engine needs: as set, or in the log of one that gave up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING

from envdoctor.commands import commands
from envdoctor.errors import EnvdoctorError
from envdoctor.facts import Setting, Symptom
from envdoctor.facts.quantities import GIB
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.settings_fit import OneCard, edition_of, number_of, shape_of, value_of
from envdoctor.rules.view import View
from envdoctor.values import dataclass

if TYPE_CHECKING:  # the memory room is imported when an engine is judged, not when rules are listed
    from envdoctor.memory import ModelShape, ServingRun
    from envdoctor.memory.serving import Budget

SOURCE = "https://docs.vllm.ai/en/latest/configuration/conserving_memory.html"
NO_BLOCKS = "SYM-NO-CACHE-BLOCKS"
"""The engine loaded its weights, ran one step, and found nothing left of its share."""
OUT_OF_MEMORY = ("SYM-CUDA-OOM", "SYM-OOM-")
BESIDE_TRAINER = "vllm_"
"""How a trainer's own keys for the engine in its process begin."""
LENGTH_STEP = 1024
"""Lengths are advised in steps of so many tokens; a shorter one serves nobody."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a card that vLLM may take: as told, or its default in a log of one that gave up."""

    value: float
    told: Setting | None
    refused: Symptom | None
    card: OneCard
    ran_out: tuple[Symptom, ...] = ()
    """The allocations that failed: what fits at no share explains them too."""

    def evidence(self) -> tuple[Evidence, ...]:
        """Return where the share, the memory and the refusal were read."""
        told = self.told
        name, shown = "gpu_memory_utilization", f"{self.value:g}"
        share = Evidence(told.native_key or told.key, told.value, told.source) if told else None
        memory = f"{self.card.usable / GIB:.1f} GiB ({self.card.gpu.name})"
        refused = self.refused
        return (
            share or Evidence(name, shown, "vLLM's default"),
            Evidence("gpu memory", memory, self.card.gpu.source),
            *((Evidence(refused.id, refused.text, refused.source),) if refused else ()),
        )


def check_serving(view: View) -> Iterable[Finding]:
    """Find a vLLM utilisation that is too low for the model or too high for the card."""
    if value_of(view, "task") not in (None, "serve"):
        raise Skip("vLLM beside a policy in training has rows of its own")
    if any(setting.framework == "sglang" for setting in view.facts.settings):
        raise Skip("the engine is SGLang, whose share of a card is another")
    refused = next((s for s in view.facts.symptoms if s.id == NO_BLOCKS), None)
    told = view.facts.setting("vllm_utilization")
    if told is None and refused is None and not _starts_engine(view):
        raise Skip("no utilisation is told")
    shape, card = shape_of(view), edition_of(view)
    value = float(told.value) if told else card.constants.vllm_utilization_percent / 100
    if not 0 < value <= 1:
        raise Skip("the utilisation is no share")
    ran_out = tuple(s for s in view.facts.symptoms if s.id.startswith(OUT_OF_MEMORY))
    share, run = Share(value, told, refused, card, ran_out), engine_of(view, shape, card, value)
    if refused and value_of(view, "tp") is None and card.count > 1:
        yield from _unsplit(share, run)
        return
    yield from _judged(share, run)


def _starts_engine(view: View) -> bool:
    """True for settings of an engine alone, which takes its usual share where they tell none."""
    trains = value_of(view, "batch") or value_of(view, "method")
    return not trains and any(setting.framework == "vllm" for setting in view.facts.settings)


def _judged(share: Share, run: ServingRun) -> Iterator[Finding]:
    from envdoctor.memory.verdicts import judge

    bounds, refusal, uncertain = judge(run, share.card.constants)
    if uncertain:
        raise Skip(uncertain)
    if refusal == "none":
        yield _no_share(share, run, bounds)
    elif refusal == "low":
        yield _low(share, run, bounds)
    elif refusal == "high":
        yield _high(share, bounds)


def engine_of(view: View, shape: ModelShape, card: OneCard, share: float) -> ServingRun:
    """Return the engine that settings state, with that share of a card; raises Skip."""
    from envdoctor.memory import ServingRun
    from envdoctor.memory.serving import loaded_as

    if (held := view.facts.setting("cpu_offload_gb")) and held.value not in ("0", "0.0"):
        raise Skip("weights that lie in host memory are not predicted")
    dtype = value_of(view, "dtype")
    try:
        return ServingRun(
            loaded_as(shape, value_of(view, "quant")),
            card.gpu.memory_total_bytes or 0,
            share,
            dtype if dtype in ("fp16", "fp32") else "bf16",
            max_model_len=number_of(view, "max_model_len", 0) or None,
            max_num_seqs=number_of(view, "max_num_seqs", 0) or None,
            max_batched_tokens=number_of(view, "max_num_batched_tokens", 0) or None,
            tp=number_of(view, "tp", 1),
            pp=number_of(view, "pp", 1),
            cuda_graphs=value_of(view, "enforce_eager") != "true",
            card=card.gpu.name or "",
            kv_dtype=value_of(view, "kv_cache_dtype") or "auto",
            largest_bytes=card.largest,
            lora_slots=number_of(view, "max_loras", 1) if value_of(view, "enable_lora") == "true" else 0,
            lora_rank=number_of(view, "max_lora_rank", 16),
        )
    except EnvdoctorError as error:
        raise Skip(f"the engine cannot be predicted: {error}") from None


def _unsplit(share: Share, run: ServingRun) -> Iterator[Finding]:
    """Judge an engine that gave up while nothing tells over how many of the cards it was split.

    Split over all of them it needs least of each: what fits in no split is said of that one.
    """
    from envdoctor.memory.verdicts import judge

    splits = [replace(run, tp=n) for n in _splits(run.shape.heads, share.card.count)]
    for split in splits:
        bounds, refusal, _ = judge(split, share.card.constants)
        if not refusal:
            if split.tp > 1:
                yield _too_few(share, split, bounds)
            return
    yield from _judged(share, splits[-1])


def _splits(heads: int, cards: int) -> list[int]:
    return [n for n in range(1, cards + 1) if not heads % n and not n & (n - 1)]


def _finding(identity: str, share: Share, summary: str, remedies: Iterable[Remedy]) -> Finding:
    return Finding(
        id=identity,
        severity=Severity.ERROR,
        summary=summary,
        cause="vLLM takes utilisation × total memory for weights, activations and keys and values; the CUDA"
        " context and its graphs come on top.",
        evidence=share.evidence(),
        remedies=tuple(remedies),
        certainty=Certainty.LIKELY,
        sources=(SOURCE,),
        explains=(share.refused.id,) if share.refused else (),
        prior=0.93,
        follows=("VLLM-MAX-MODEL-LEN*",),
    )


def _too_few(share: Share, run: ServingRun, bounds: Budget) -> Finding:
    summary = (
        f"{run.shape.name} needs {run.tp} of the cards: split over fewer it leaves no memory for keys at"
        f" gpu_memory_utilization {share.value:g}"
    )
    split = Remedy(
        f"Split it over {run.tp} cards: from a utilisation of {bounds.low:.2f} on one longest request fits.",
        commands("--tensor-parallel-size {}", run.tp),
    )
    return _finding("VLLM-BUDGET-SPLIT", share, summary, (split,))


def _low(share: Share, run: ServingRun, bounds: Budget) -> Finding:
    low, high = bounds
    summary = (
        f"gpu_memory_utilization {share.value:g} is too low for {run.shape.name} {_where(run)}: from"
        f" {low:.2f} on one longest request fits, and {high:.2f} is the most"
    )
    shorten = Remedy("Or shorten max_model_len, or lower max_num_seqs.", ("--max-model-len 4096",))
    return _finding("VLLM-BUDGET-LOW", share, summary, (_raised(share, bounds), shorten))


def _raised(share: Share, bounds: Budget) -> Remedy:
    """Raise the share to the usual one; beside a trainer only as far as the engine needs."""
    low, high = bounds
    key = share.told.native_key if share.told else None
    if key and key.startswith(BESIDE_TRAINER):
        least = f"{min(high, (floor(low * 20) + 1) / 20):.2f}"
        text = f"Set it to {least}, no more than it needs: the trainer takes what is left of the card."
        return Remedy(text, commands("--{} {}", key, least))
    return Remedy(
        f"Set it between {low:.2f} and {high:.2f}.",
        commands("--gpu-memory-utilization {}", f"{max(low, min(0.9, high)):.2f}"),
    )


def _high(share: Share, bounds: Budget) -> Finding:
    low, high = bounds
    summary = (
        f"gpu_memory_utilization {share.value:g} leaves no room for the CUDA context and graphs on this card:"
        f" {high:.2f} is the most, {low:.2f} the least"
    )
    lower = Remedy(
        f"Lower it to {high:.2f} or less.",
        commands("--gpu-memory-utilization {}", f"{max(low, high - 0.02):.2f}"),
    )
    return _finding("VLLM-BUDGET-HIGH", share, summary, (lower,))


def _no_share(share: Share, run: ServingRun, bounds: Budget) -> Finding:
    from envdoctor.memory.serving import describe_engine

    engine = describe_engine(run, share.card.constants)
    weights = f"{engine.weights / GIB:.1f} GiB are weights"
    summary = (
        f"{run.shape.name} does not fit {_where(run)} at any gpu_memory_utilization: it needs"
        f" {bounds.low:.2f} of it ({weights}), and {bounds.high:.2f} can be had"
    )
    ways = (*_shorter(share, run), *_wider(share, run), *_quantised(run, engine.weights, bounds))
    found = _finding("VLLM-BUDGET-NONE", share, summary, ways)
    return replace(found, explains=tuple(dict.fromkeys((*found.explains, *(s.id for s in share.ran_out)))))


def _wider(share: Share, run: ServingRun) -> Iterator[Remedy]:
    """Yield the fewest cards that hold it; where fewer are there, in words alone after what these hold."""
    from envdoctor.memory.verdicts import least_split

    cards = least_split(run, share.card.constants)
    if cards and cards <= share.card.count:
        yield Remedy(f"Split it over {cards} cards.", commands("--tensor-parallel-size {}", cards))
        return
    most = _splits(run.shape.heads, share.card.count)[-1]
    if most > run.tp:
        yield from _shorter(share, replace(run, tp=most), f" --tensor-parallel-size {most}")
    if cards:
        yield Remedy(
            f"It takes {cards} such cards (--tensor-parallel-size {cards}); {share.card.count} told."
        )


def _quantised(run: ServingRun, weights: int, bounds: Budget) -> Iterator[Remedy]:
    """Yield the forms of plain weights that leave this card room for one more such share of keys."""
    if run.shape.stored:
        return
    forms = (("8 bits (FP8, INT8)", 2), ("4 bits (AWQ, GPTQ)", 3.6))
    room = run.gpu_bytes * bounds.high
    small = [
        f"{words}: {weights / part / GIB:.1f} GiB" for words, part in forms if weights / part < 0.8 * room
    ]
    if small:
        yield Remedy(
            f"Serve a copy of the model with quantised weights; they take, in {', in '.join(small)}."
        )


def _shorter(share: Share, run: ServingRun, split: str = "") -> Iterator[Remedy]:
    """Yield the length that fits at the most that can be had, where a usable one does."""
    from envdoctor.memory.serving import describe_engine, utilization_bounds

    most = floor(utilization_bounds(run, share.card.constants).high * 100) / 100
    if not 0 < most <= 1:
        return
    tokens = describe_engine(replace(run, utilization=most), share.card.constants).tokens
    length = tokens // LENGTH_STEP * LENGTH_STEP
    if length:
        where = f", split over {run.tp} cards" if split else ""
        options = f"--gpu-memory-utilization {most:.2f} --max-model-len {length}{split}"
        yield Remedy(
            f"Shorten max_model_len: at a utilisation of {most:.2f} about {length} tokens fit{where}.",
            (options,),
        )


def _where(run: ServingRun) -> str:
    return "on this card" if run.tp == 1 else f"split over {run.tp} cards"


RULES = (
    Rule("VLLM-BUDGET", "vLLM's share of the card holds the model and leaves room", check_serving, SOURCE),
)
