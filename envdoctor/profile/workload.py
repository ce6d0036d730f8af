"""What is wanted and what there is to do it with; and the setting that a search chooses."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.matrix import Matrix, tables
from envdoctor.memory import ModelShape, find_shape
from envdoctor.memory.recipes import PLAIN, TRAINERS, Recipe, recipe_of
from envdoctor.memory.run import PARALLEL
from envdoctor.target.cards import Card
from envdoctor.target.stack import Stack
from envdoctor.values import dataclass, replace

USUAL_BATCH = 16


@dataclass(frozen=True, slots=True)
class Workload:
    """What to run, on which (equal) cards, with which versions. Lengths in tokens, sizes in bytes.

    Rows are all `seq` tokens long, or between `shortest_row` and that.
    """

    shape: ModelShape
    cards: tuple[Card, ...]
    task: str = "sft"
    method: str = "auto"
    seq: int = 2048
    shortest_row: int | None = None
    global_batch: int | None = None
    stack: Stack = field(default_factory=Stack)
    model: str = ""
    beside_bytes: int = 0
    lora_rank: int = 8
    num_generations: int = 8
    parallel: str | None = None
    optim: str | None = None
    optim_rank: int = 0
    trained_layers: int = 0
    virtual_tokens: int = 0
    trainer: str = "transformers"
    recipe: Recipe = PLAIN

    def __post_init__(self) -> None:
        """Raise InputError for what cannot be asked."""
        if not self.cards:
            raise InputError("--gpu: no card is known; name one, such as --gpu 'RTX 4090'")
        for name, value in (("seq", self.seq), ("lora-rank", self.lora_rank)):
            if value < 1:
                raise InputError(f"--{name}: {value} is no count")
        if self.global_batch is not None and self.global_batch < 1:
            raise InputError(f"--global-batch: {self.global_batch} is no count")
        if self.shortest_row is not None and not 1 <= self.shortest_row <= self.seq:
            raise InputError(f"--shortest-row {self.shortest_row}: rows have 1 to {self.seq} tokens (--seq)")
        if self.shortest_row is not None and self.task == "serve":
            raise InputError("--shortest-row: is of training, not of --task serve")
        if self.shape.learned_positions and self.seq > self.shape.learned_positions:
            raise InputError(f"--seq {self.seq}: the model knows {self.shape.learned_positions} positions")
        if self.task == "grpo" and self.global_batch and self.global_batch % self.num_generations:
            wanted = f"{self.num_generations} answers to a question"
            raise InputError(f"--global-batch {self.global_batch}: no multiple of the {wanted}")
        if self.parallel is not None and self.parallel not in PARALLEL:
            raise InputError(f"--parallel: {self.parallel!r} is none of {', '.join(PARALLEL)}")
        if self.beside_bytes < 0:
            raise InputError("--beside: a negative size")

    @property
    def card(self) -> Card:
        """The smallest of the cards, which decides what fits."""
        return min(self.cards, key=lambda card: card.memory_bytes or 0)

    @property
    def card_bytes(self) -> int:
        """Bytes that NVML reports of the smallest card."""
        return self.card.memory_bytes or 0

    @property
    def room(self) -> int:
        """Bytes of the smallest card that are left for this run."""
        return self.card.usable_bytes - self.beside_bytes

    @property
    def uneven(self) -> bool:
        """True when rows differ in length."""
        return self.shortest_row is not None and self.shortest_row < self.seq

    @property
    def bf16(self) -> bool:
        """True when every card computes in bf16: from compute capability 8.0, or when it is not known."""
        return all(card.capability is None or card.at_least(8) for card in self.cards)


@dataclass(frozen=True, slots=True)
class Choice:
    """One complete setting. A field that is None or false does not apply; lengths in tokens."""

    task: str
    method: str
    parallel: str = "none"
    gpus: int = 1
    batch: int = 1
    grad_accum: int = 1
    seq: int = 2048
    dtype: str = "bf16"
    amp: str = "bf16"
    grad_ckpt: bool = True
    attn: str = "sdpa"
    liger: bool = False
    optim: str = "adamw_torch_fused"
    lora_rank: int = 8
    optim_rank: int = 0
    trained_layers: int = 0
    virtual_tokens: int = 0
    offload_optimizer: bool = False
    offload_params: bool = False
    num_generations: int | None = None
    vllm_mode: str | None = None
    vllm_gpus: int | None = None
    vllm_tp: int | None = None
    vllm_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    prefix_caching: bool = False
    alloc_conf: str | None = "expandable_segments:True"

    @property
    def global_batch(self) -> int:
        """Samples of one optimizer step over all cards."""
        return self.batch * self.grad_accum * self.gpus

    @property
    def deepspeed(self) -> bool:
        """True when DeepSpeed shards the states."""
        return self.parallel.startswith("zero")

    @property
    def zero_stage(self) -> int:
        """ZeRO's stage, 0 without."""
        return int(self.parallel[-1]) if self.deepspeed else 0

    def to_json(self) -> dict[str, Any]:
        """Return what applies to the task, under the options' names of `envdoctor memory`."""
        serving = {"task", "method", "dtype", "max_model_len", "max_num_seqs", "prefix_caching", "gpus"}
        found: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None or (item.name == "lora_rank" and self.method not in ("lora", "qlora")):
                continue
            if not value and item.name in ("optim_rank", "trained_layers", "virtual_tokens"):
                continue
            if self.task != "serve" or item.name in serving or item.name.startswith("vllm"):
                found[item.name] = value
        if self.task != "serve":
            found["global_batch"] = self.global_batch
        return found


def workload_of(
    model: str,
    cards: tuple[Card, ...],
    stack: Stack,
    matrix: Matrix,
    *,
    task: str = "sft",
    framework: str | None = None,
    seq: int | None = None,
    **wanted: Any,
) -> Workload:
    """Return what is wanted of a model on cards, with that framework's step where it is a trainer.

    Raises InputError for a model that is not found or a task that the trainer has not, Unavailable for a
    model type that is not known.
    """
    shape = find_shape(model)
    if not shape.known:
        raise Unavailable(f"--model {model}: model type {shape.model_type!r} is not known here")
    length = seq if seq is not None else min(2048, shape.learned_positions or 2048)
    work = Workload(shape, cards, task, seq=length, stack=stack, model=model, **wanted)
    if task == "serve":
        return work
    usual = "transformers" if task == "sft" else "trl"
    trainer = framework if framework and framework in TRAINERS else usual
    recipe = recipe_of(matrix.rows(tables.TrainerRow), trainer, task, stack.versions)
    return replace(work, trainer=trainer, recipe=recipe)
