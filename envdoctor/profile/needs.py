"""What a setting takes of a card: its training, and vLLM beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from math import inf
from operator import attrgetter

from envdoctor.memory import Constants, Prediction, ServingRun, TrainingRun, predict
from envdoctor.memory.allocator import MARGIN
from envdoctor.memory.analytic import lasting_bytes
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.memory.recipes import Recipe
from envdoctor.memory.replay import can_replay
from envdoctor.memory.serving import utilization_bounds
from envdoctor.profile.options import global_batch
from envdoctor.profile.workload import Choice, Workload
from envdoctor.values import NamedTuple, replace

SERVER_UTILIZATION = 0.90
REPLAYS, REPLAYED_LAYERS = 4, 128
"""Settings that a search looks at closely, where only the close bound may fit: at most so many, fewer of a
deep model, since what one takes grows with its layers (two milliseconds each)."""
SORT = attrgetter(
    "method", "parallel", "gpus", "grad_ckpt", "liger", "optim", "offload_optimizer", "offload_params",
    "vllm_mode", "vllm_tp",
)  # fmt: skip
"""What tells settings of one search apart, but for their batches."""
BESIDE = ("alloc_conf", "vllm_tp", "vllm_gpus")
TRAINED = attrgetter(*(item.name for item in fields(Choice) if item.name not in BESIDE))
"""A setting without what it says of the engine beside it, of which training knows nothing."""
REPLAYS_AGAIN = 3
"""Settings that are looked at closely before it is said that nothing fits."""
SEQUENCES = 64
"""Requests that vLLM takes at once beside a policy in training."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a setting takes of a card: the training's prediction, and the bytes of vLLM beside it."""

    prediction: Prediction
    engine_bytes: int = 0
    refusal: str = ""
    close: bool = False
    """Whether the bound was replayed, and is no more than the rough one."""

    @property
    def device_bytes(self) -> int:
        """Bytes that must fit on the card."""
        return self.prediction.device_bytes + self.engine_bytes

    @property
    def least_bytes(self) -> int:
        """The least that a close bound may be: what is allocated and its margin, and what lies beside it."""
        prediction = self.prediction
        least = int(prediction.peak_allocated_bytes * (1 + MARGIN))
        return self.device_bytes - prediction.peak_reserved_bytes + prediction.idle_bytes + least


@dataclass(slots=True)
class Judge:
    """Judges settings once each, and spares those that a known failure rules out."""

    work: Workload
    constants: Constants
    seen: dict[Choice, Need] = field(default_factory=dict)
    dead: set[object] = field(default_factory=set)
    alive: set[object] = field(default_factory=set)
    """Sorts of settings whose batch of one may fit."""
    rough: dict[object, Prediction] = field(default_factory=dict)
    """Of settings without what they say of vLLM, of which training knows nothing."""
    engines: dict[tuple[int | None, int | None], Engine] = field(default_factory=dict)
    """vLLM beside a policy, by the cards that it is split over and the length of a request."""
    heavy: set[Choice] = field(default_factory=set)
    """Settings of which what lasts is too much already: what else they take is not known."""
    weights: dict[object, int] = field(default_factory=dict)
    """Bytes of what lasts through a step of such a training, by its sort: no batch or length matters."""
    replays: int = field(init=False)
    room: int = field(init=False)

    def __post_init__(self) -> None:
        """Look closely at as many settings as the model's depth affords."""
        self.room = self.work.room
        self.replays = max(1, min(REPLAYS, REPLAYED_LAYERS // self.work.shape.layers))

    def fits(self, choice: Choice) -> bool:
        """True when the setting's bound fits; a setting whose batch of one fails is dead at any batch.

        Not so where one micro batch is all of a step: under FSDP several keep whole gradients between them,
        and an optimizer that steps each weight at once takes no more than one.
        """
        once = choice.parallel == "fsdp" or find_optimizer(choice.optim).layerwise
        if once and choice.grad_accum == 1 and choice.batch > 1:
            return self._room(choice)
        sort = SORT(choice)
        if sort in self.dead:
            return False
        if choice.batch > 1 and sort not in self.alive:
            each = global_batch(self.work, choice) // choice.gpus
            if not self._room(replace(choice, batch=1, grad_accum=each), surely=False):
                self.dead.add(sort)
                return False
            self.alive.add(sort)
        fits = self._room(choice)
        if not fits and choice.batch == 1:
            self.dead.add(sort)
        return fits

    def _room(self, choice: Choice, surely: bool = True) -> bool:
        """True when the rough bound fits, or for the first few that may fit at all, the close one.

        The rough one knows rows of one length alone: where they differ, the close one must fit to be sure.
        """
        if choice not in self.seen and not self._lasts(choice):
            self.heavy.add(choice)
            return False
        need, room = self.need(choice), self.room
        if not self._may(need):
            return False
        rough = need.device_bytes <= room
        if need.close or (rough and not (surely and self.work.uneven)):
            return rough
        if not rough:
            if not self.replays:
                return False
            self.replays -= 1
        close = self._needed(choice, room)
        if close.device_bytes > room:
            return False
        self.seen[choice] = close
        return True

    def may_fit(self, choice: Choice) -> bool:
        """False where not even what is allocated for certain fits, with a close bound's margin."""
        return (choice in self.seen or self._lasts(choice)) and self._may(self.need(choice))

    def _lasts(self, choice: Choice) -> bool:
        """False where what lasts through a step is too much."""
        return self.lasting(choice) * (1 + MARGIN) < self.room + 1

    def _may(self, need: Need) -> bool:
        return not need.refusal and need.least_bytes <= self.room

    def lasting(self, choice: Choice) -> int:
        """Bytes that surely lie there through a step, known before any layer is."""
        sort = SORT(choice)
        lasting = self.weights.get(sort)
        if lasting is None:
            lasting = self.weights[sort] = lasting_bytes(run_of(self.work, choice), self.constants)
        return lasting

    def any_fits(self, choices: Iterable[Choice], replays: int) -> bool:
        """True when the rough bound of one fits, or the close one of the first `replays` that may fit at all.

        What cannot be replayed has no other bound than the rough one, so it is asked for first.
        """
        room, near = self.room, list[Choice]()
        if self.work.uneven and not replays:
            return False
        for choice in choices:
            if not self.may_fit(choice):
                continue
            need = self.need(choice)
            if need.device_bytes <= room and not self.work.uneven:
                return True
            near.append(choice)
        near = sorted(near[:replays], key=lambda choice: can_replay(run_of(self.work, choice)))
        return any(self._needed(choice, room).device_bytes <= room for choice in near)

    def again(self) -> Judge:
        """Where nothing fitted: forget what rough bounds ruled out, and look at more settings closely."""
        self.dead.clear()
        self.alive.clear()
        self.replays = REPLAYS_AGAIN
        return self

    def look_closer(self, choice: Choice) -> Need:
        """Return what the setting takes by the close bound."""
        if not self.need(choice).close:
            self.seen[choice] = self._needed(choice, inf)
        return self.seen[choice]

    def need(self, choice: Choice) -> Need:
        """Return what the setting takes of the smallest card."""
        need = self.seen.get(choice)
        if need is None:
            need = self.seen[choice] = self._needed(choice)
        return need

    def _needed(self, choice: Choice, enough: float | None = None) -> Need:
        """What the setting takes: its bound is rough, or close where it is told how many bytes do."""
        close, prediction = enough is not None, self._predicted(choice, enough)
        if choice.vllm_mode is None:
            return Need(prediction, close=close)
        sort = choice.vllm_tp, choice.max_model_len
        if sort not in self.engines:
            self.engines[sort] = engine_beside(self.work, choice, self.constants)
        low, taken = self.engines[sort]
        if choice.vllm_mode == "server":
            too_large = low > SERVER_UTILIZATION
            refusal = f"vLLM alone needs {low:.2f} of a card, on {choice.vllm_tp} cards" if too_large else ""
            return Need(prediction, 0, refusal, close)
        return Need(prediction, taken, close=close)

    def _predicted(self, choice: Choice, enough: float | None) -> Prediction:
        """What its training takes; a run that cannot be replayed has no closer bound than the rough one."""
        if enough is not None and can_replay(run := run_of(self.work, choice)):
            return predict(run, self.constants, True, enough)
        alike = TRAINED(choice)
        rough = self.rough.get(alike)
        if rough is None:
            rough = predict(run_of(self.work, choice), self.constants, False)
            self.rough[alike] = rough
        return rough


class Engine(NamedTuple):
    """The least share of a card with which vLLM starts, and the bytes that it then takes of it."""

    low: float
    taken: int


def engine_beside(work: Workload, choice: Choice, constants: Constants) -> Engine:
    """Return the least engine that serves a GRPO setting."""
    low, _ = utilization_bounds(engine_of(work, choice, 0.5), constants)
    least = predict(engine_of(work, choice, min(1.0, max(low, 0.01))), constants)
    return Engine(low, max(0, least.device_bytes - constants.cuda_context))


def run_of(work: Workload, choice: Choice) -> TrainingRun:
    """Return the training run that a setting is."""
    return TrainingRun(
        work.shape,
        choice.method,
        batch=choice.batch,
        seq=choice.seq,
        shortest_row=work.shortest_row,
        grad_accum=choice.grad_accum,
        dtype=choice.dtype,
        amp=choice.amp,
        optim=choice.optim,
        grad_ckpt=choice.grad_ckpt,
        attn=choice.attn,
        liger=choice.liger,
        lora_rank=choice.lora_rank,
        optim_rank=choice.optim_rank,
        trained_layers=choice.trained_layers,
        virtual_tokens=choice.virtual_tokens,
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
