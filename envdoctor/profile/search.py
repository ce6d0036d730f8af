"""The fastest setting whose bound fits: settings in order of modelled speed, the first that fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from envdoctor.errors import InputError
from envdoctor.facts.quantities import GIB
from envdoctor.memory import Constants, Prediction, ServingRun, TrainingRun, predict
from envdoctor.memory.layout import parameters
from envdoctor.memory.recipes import Recipe
from envdoctor.memory.serving import utilization_bounds
from envdoctor.memory.sharding import host_bytes
from envdoctor.profile.options import Barred, barred, global_batch, training_choices
from envdoctor.profile.speed import CardSpeed, seconds_per_sample, trained_parameters
from envdoctor.profile.workload import Choice, Workload

SHOWN = 12
SERVER_UTILIZATION = 0.90
FULL = 0.95
"""A bound that comes this near to the card needs no reason for not using more."""
REPLAYS = 1
"""Settings that a search looks at closely, where only the close bound may fit (tens of milliseconds each)."""
SEQUENCES = 64
"""Requests that vLLM takes at once beside a policy in training."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a setting takes of a card: the training's prediction, and the bytes of vLLM beside it."""

    prediction: Prediction
    engine_bytes: int = 0
    refusal: str = ""

    @property
    def device_bytes(self) -> int:
        """Bytes that must fit on the card."""
        return self.prediction.device_bytes + self.engine_bytes

    @property
    def least_bytes(self) -> int:
        """What is allocated for certain, and what lies beside it."""
        prediction = self.prediction
        return self.device_bytes - prediction.peak_reserved_bytes + prediction.peak_allocated_bytes


@dataclass(frozen=True, slots=True)
class Rejection:
    """A setting that was not chosen, why, and how its modelled speed compares (above 1: faster)."""

    choice: Choice | Barred
    why: str
    speed: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the contract's object."""
        kept = self.choice.choice if isinstance(self.choice, Barred) else brief(self.choice)
        found: dict[str, Any] = {"choice": dict(kept), "why": self.why}
        return found if self.speed is None else {**found, "relative_speed": round(self.speed, 2)}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of a search. `choice` is None when nothing fits."""

    work: Workload
    choice: Choice | None
    need: Need | None
    rejected: tuple[Rejection, ...]
    considered: int = 0
    predicted: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Judge:
    """Judges settings once each, and spares those that a known failure rules out."""

    work: Workload
    constants: Constants
    seen: dict[Choice, Need] = field(default_factory=dict)
    dead: set[Choice] = field(default_factory=set)
    replays: int = REPLAYS

    def fits(self, choice: Choice) -> bool:
        """True when the setting's bound fits; a setting whose batch of one fails is dead at any batch."""
        least = replace(choice, batch=1, grad_accum=1)
        if least in self.dead:
            return False
        each = global_batch(self.work, choice) // choice.gpus
        smallest = replace(choice, batch=1, grad_accum=each)
        if choice.batch > 1 and smallest not in self.seen and not self._room(smallest):
            self.dead.add(least)
            return False
        fits = self._room(choice)
        if not fits and choice.batch == 1:
            self.dead.add(least)
        return fits

    def _room(self, choice: Choice) -> bool:
        """True when the rough bound fits, or for the first few that may fit at all, the close one."""
        need, room = self.need(choice), self.work.room
        if need.refusal or need.least_bytes > room or need.device_bytes <= room or not self.replays:
            return not need.refusal and need.device_bytes <= room
        self.replays -= 1
        return self.look_closer(choice).device_bytes <= room

    def look_closer(self, choice: Choice) -> Need:
        """Return what the setting takes by the close bound."""
        self.seen[choice] = needed(self.work, choice, self.constants, close=True)
        return self.seen[choice]

    def need(self, choice: Choice) -> Need:
        """Return what the setting takes of the smallest card."""
        if choice not in self.seen:
            self.seen[choice] = needed(self.work, choice, self.constants)
        return self.seen[choice]


def needed(work: Workload, choice: Choice, constants: Constants, close: bool = False) -> Need:
    """Return what a training setting takes of the smallest card, vLLM beside it under GRPO."""
    prediction = predict(run_of(work, choice), constants, close)
    if choice.vllm_mode is None:
        return Need(prediction)
    low, _ = utilization_bounds(engine_of(work, choice, 0.5), constants)
    if choice.vllm_mode == "server":
        too_large = low > SERVER_UTILIZATION
        refusal = f"vLLM alone needs {low:.2f} of a card, on {choice.vllm_tp} cards" if too_large else ""
        return Need(prediction, 0, refusal)
    engine = predict(engine_of(work, choice, min(1.0, max(low, 0.01))), constants)
    return Need(prediction, max(0, engine.device_bytes - constants.cuda_context))


def run_of(work: Workload, choice: Choice) -> TrainingRun:
    """Return the training run that a setting is."""
    return TrainingRun(
        work.shape,
        choice.method,
        batch=choice.batch,
        seq=choice.seq,
        grad_accum=choice.grad_accum,
        dtype=choice.dtype,
        amp=choice.amp,
        optim=choice.optim,
        grad_ckpt=choice.grad_ckpt,
        attn=choice.attn,
        liger=choice.liger,
        lora_rank=choice.lora_rank,
        gpus=choice.gpus,
        parallel=choice.parallel,
        offload_optimizer=choice.offload_optimizer,
        offload_params=choice.offload_params,
        expandable_segments=choice.alloc_conf == "expandable_segments:True",
        task=work.task,
        trainer=work.trainer,
        recipe=_recipe(work, choice),
    )


def _recipe(work: Workload, choice: Choice) -> Recipe:
    """The trainer's step, as its file is written: under GRPO vLLM generates."""
    return replace(work.recipe, generates=work.recipe.generates and choice.vllm_mode is None)


def engine_of(work: Workload, choice: Choice, utilization: float) -> ServingRun:
    """Return the vLLM engine that serves a GRPO setting."""
    return ServingRun(
        work.shape,
        work.card_bytes,
        utilization,
        dtype="bf16" if work.bf16 else "fp16",
        max_model_len=choice.max_model_len,
        max_num_seqs=SEQUENCES,
        max_batched_tokens=max(2048, choice.max_model_len or 0),
        tp=choice.vllm_tp or 1,
    )


def find_training(work: Workload, constants: Constants, speed: CardSpeed) -> Found:
    """Return the fastest training setting that fits, and what was rejected on the way."""
    priced = [(seconds_per_sample(work.shape, c, speed), n, c) for n, c in enumerate(training_choices(work))]
    priced.sort(key=lambda entry: (entry[2].offload_optimizer, entry[0], entry[1]))  # host speed is not known
    if not priced:
        raise InputError(f"nothing to choose from: {_contradiction(work)}")
    judge = Judge(work, constants)
    fitting = list(_first_fitting(priced, judge, 1))
    chosen = fitting[0] if fitting else None
    seconds = chosen[0] if chosen else None
    rejected = _rejections(priced, judge, seconds)
    need = judge.look_closer(chosen[2]) if chosen else None
    choice = _with_engine(work, chosen[2], judge, constants) if chosen else None
    return Found(
        work,
        choice,
        need,
        (*rejected, *(Rejection(b, b.why) for b in barred(work))),
        considered=len(priced),
        predicted=len(judge.seen),
        notes=tuple(_notes(work, choice, judge, constants)),
    )


def _contradiction(work: Workload) -> str:
    """Why no setting at all matches what is asked."""
    cards = len(work.cards)
    if work.global_batch and work.global_batch % cards:
        return f"--global-batch {work.global_batch} cannot be shared evenly by {cards} cards"
    if work.parallel:
        return f"--parallel {work.parallel} does not go with {cards} cards and what is installed"
    return "the method asked for needs a package that is not installed"


def step_down(work: Workload, constants: Constants, speed: CardSpeed, below: int) -> Found:
    """Return the fastest setting whose bound is lower than `below` bytes: the next after an out-of-memory."""
    smaller = replace(work, beside_bytes=max(work.beside_bytes, work.card.usable_bytes - below + 1))
    return replace(find_training(smaller, constants, speed), work=work)


Priced = tuple[float, int, Choice]


def _first_fitting(priced: Iterable[Priced], judge: Judge, count: int) -> Iterable[Priced]:
    for entry in priced:
        if count and judge.fits(entry[2]):
            count -= 1
            yield entry
            if not count:
                return


def _rejections(priced: list[Priced], judge: Judge, seconds: float | None) -> tuple[Rejection, ...]:
    """The faster settings that do not fit: of each kind the nearest miss, then the fastest kinds first."""
    nearest: dict[tuple[object, ...], tuple[int, float, Choice]] = {}
    for cost, _, choice in priced:
        if seconds is not None and cost >= seconds:
            break
        need = judge.seen.get(choice)
        if need is None or not (need.refusal or need.device_bytes > judge.work.room):
            continue
        kind = (
            choice.method,
            choice.parallel,
            choice.offload_params,
            choice.grad_ckpt,
            choice.vllm_mode,
            choice.vllm_tp,
        )
        if kind not in nearest or need.device_bytes < nearest[kind][0]:
            nearest[kind] = (need.device_bytes, cost, choice)
    ranked = sorted(nearest.values(), key=lambda item: (item[1] if seconds else item[0], item[0]))
    return tuple(
        Rejection(choice, why_not(judge, choice), seconds / cost if seconds else None)
        for _, cost, choice in ranked[:SHOWN]
    )


def why_not(judge: Judge, choice: Choice) -> str:
    """Say by how much a setting passes the card, where its peak falls and what it is made of."""
    need = judge.need(choice)
    if need.refusal:
        return need.refusal
    largest = max(need.prediction.components, key=lambda c: c.bytes, default=None)
    parts = f", of which {largest.name} {largest.bytes / GIB:.1f}" if largest else ""
    engine = f" and vLLM's {need.engine_bytes / GIB:.1f}" if need.engine_bytes else ""
    return (
        f"needs up to {need.device_bytes / GIB:.1f} GiB of {judge.work.room / GIB:.1f}"
        f" (peak in {need.prediction.phase}{parts}{engine})"
    )


def _with_engine(work: Workload, choice: Choice, judge: Judge, constants: Constants) -> Choice:
    """Complete a GRPO setting with vLLM's share: what its card leaves, rounded down."""
    if choice.vllm_mode is None:
        return choice
    total = work.card_bytes
    if choice.vllm_mode == "server":
        return replace(choice, vllm_utilization=SERVER_UTILIZATION, max_num_seqs=SEQUENCES)
    low, _ = utilization_bounds(engine_of(work, choice, 0.5), constants)
    need = judge.need(choice)
    spare = low + (work.room - need.device_bytes) / total
    share = max(round(low + 0.005, 2), int(min(0.9, spare) * 100) / 100)
    return replace(choice, vllm_utilization=share, max_num_seqs=SEQUENCES)


def _notes(work: Workload, choice: Choice | None, judge: Judge, constants: Constants) -> Iterable[str]:
    if choice is None:
        yield from _longest(work, constants)
        yield from _what_would_do(work, constants)
        return
    need = judge.need(replace(choice, vllm_utilization=None, max_num_seqs=None))
    share = need.device_bytes / work.room
    if share < FULL:
        yield f"uses at most {share:.0%} of what the card offers: {_why_no_more(work, choice, judge)}"
    if choice.offload_optimizer or choice.offload_params:
        trained = trained_parameters(work.shape, choice)
        host = host_bytes(parameters(work.shape), trained, choice.offload_optimizer, choice.offload_params)
        yield f"needs about {host / GIB:.0f} GiB of host memory over all ranks"
    yield from filter(None, (work.shape.uncertain, work.shape.unseen))


def _why_no_more(work: Workload, choice: Choice, judge: Judge) -> str:
    """Why a setting leaves room: nothing faster exists, or the next larger step does not fit."""
    larger = [
        c
        for c in training_choices(work)
        if c.batch > choice.batch
        and replace(c, batch=0, grad_accum=0)
        == replace(choice, batch=0, grad_accum=0, vllm_utilization=None, max_num_seqs=None)
    ]
    if not larger:
        return f"one micro batch already holds the global batch of {choice.global_batch}; ask for more"
    following = min(larger, key=lambda c: c.batch)
    if judge.fits(following):
        return "larger micro batches fit but are no faster by the model"
    kind = "that divides the global batch" if work.global_batch else "weighed"
    return f"the next micro batch {kind}, {following.batch}, {why_not(judge, following)}"


def _longest(work: Workload, constants: Constants) -> Iterable[str]:
    """When nothing fits at the asked length: the longest that does, found by halving the interval."""
    smallest = _smallest(work)

    def fits(seq: int) -> bool:
        judge = Judge(replace(work, seq=seq), constants)
        return any(
            judge.fits(replace(c, seq=seq, max_model_len=seq if c.vllm_mode else None)) for c in smallest
        )

    low, high = 0, work.seq // 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * 64) else (low, middle)
    if low:
        yield f"nothing fits at a length of {work.seq}; {low * 64} tokens would"
    else:
        yield "nothing fits at any length: shard over more cards, quantise, offload, or take a smaller model"


def _what_would_do(work: Workload, constants: Constants) -> Iterable[str]:
    """What would make the asked length fit: Liger, where it may be there, or more of the card."""
    if not work.stack.has("liger-kernel") and not work.stack.lacks("liger-kernel"):
        fused = [replace(c, liger=True) for c in _smallest(work)]
        if any(Judge(work, constants).fits(choice) for choice in fused):
            yield "with Liger's kernels (pip install liger-kernel) it would fit as asked"
    for count in (2, 4, 8):
        if count > len(work.cards):
            wider = replace(work, cards=(work.card,) * count, global_batch=None)
            if any(Judge(wider, constants).fits(choice) for choice in _smallest(wider)):
                yield f"{count} of this card would do"
                return


def _smallest(work: Workload) -> list[Choice]:
    """The settings that need the least of their kind: one row a card, checkpointing on."""
    return [c for c in training_choices(work) if c.batch == 1 and c.grad_ckpt]


def brief(choice: Choice) -> dict[str, Any]:
    """Return what tells a rejected setting from the others."""
    if choice.task == "serve":
        return {key: getattr(choice, key) for key in ("vllm_tp", "max_model_len", "max_num_seqs", "dtype")}
    keys = ("method", "parallel", "batch", "grad_accum", "grad_ckpt", "attn", "optim")
    found = {key: getattr(choice, key) for key in keys}
    found |= {key: True for key in ("liger", "offload_optimizer", "offload_params") if getattr(choice, key)}
    if choice.vllm_mode:
        found |= {"vllm_mode": choice.vllm_mode, "vllm_tp": choice.vllm_tp, "gpus": choice.gpus}
    return found
