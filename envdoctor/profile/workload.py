"""What is wanted and what there is to do it with; and the setting that a search chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from envdoctor.errors import InputError
from envdoctor.facts import ComputeCapability
from envdoctor.memory import ModelShape
from envdoctor.memory.recipes import PLAIN, Recipe
from envdoctor.memory.run import PARALLEL

METHODS = ("auto", "full", "lora", "qlora")
USUAL_BATCH = 16
DRIVER_PERCENT = 1.5
"""Of the memory that NVML reports, what the driver keeps and CUDA never offers (a 24,576 MiB card offers
24,210; measured on cards of 24, 48, 80 and 141 GB)."""


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU: its name, the bytes NVML reports, and its compute capability when that is known."""

    name: str
    memory_bytes: int
    capability: ComputeCapability | None = None

    @property
    def usable_bytes(self) -> int:
        """Bytes that a process can have of it, its CUDA context counted in."""
        return int(self.memory_bytes * (1 - DRIVER_PERCENT / 100))

    def at_least(self, major: int, minor: int = 0) -> bool:
        """True when the capability is known and not lower."""
        return self.capability is not None and self.capability >= ComputeCapability(major, minor)


@dataclass(frozen=True, slots=True)
class Stack:
    """The examined versions by normalized distribution name; `complete` when absence means not installed."""

    versions: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False

    def lacks(self, name: str) -> bool:
        """True when it is known not to be installed."""
        return self.complete and name not in self.versions

    def has(self, name: str) -> bool:
        """True when it is known to be installed."""
        return name in self.versions

    def within(self, name: str, specifier: str) -> bool | None:
        """Whether the version lies in the range; None when it is not known."""
        if name not in self.versions:
            return None
        try:
            return SpecifierSet(specifier).contains(Version(self.versions[name]), prereleases=True)
        except InvalidVersion:
            return None


@dataclass(frozen=True, slots=True)
class Workload:
    """What to run, on which (equal) cards, with which versions. Lengths in tokens, sizes in bytes."""

    shape: ModelShape
    cards: tuple[Card, ...]
    task: str = "sft"
    method: str = "auto"
    seq: int = 2048
    global_batch: int | None = None
    stack: Stack = field(default_factory=Stack)
    model: str = ""
    beside_bytes: int = 0
    lora_rank: int = 8
    num_generations: int = 8
    parallel: str | None = None
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
        return min(self.cards, key=lambda card: card.memory_bytes)

    @property
    def room(self) -> int:
        """Bytes of the smallest card that are left for this run."""
        return self.card.usable_bytes - self.beside_bytes

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
            if value is None or (item.name == "lora_rank" and self.method == "full"):
                continue
            if self.task != "serve" or item.name in serving or item.name.startswith("vllm"):
                found[item.name] = value
        if self.task != "serve":
            found["global_batch"] = self.global_batch
        return found
