"""The settings of a run that a layer's code sees: widths of numbers, what is trained, which kernels."""

from __future__ import annotations

from typing import NamedTuple

from envdoctor.memory.layout import NAMES_ATTENTION
from envdoctor.memory.run import HEADS, TABLES, TrainingRun

# The decoders that liger_kernel 0.8 patches; others run their own code.
LIGER_TYPES = frozenset(
    ("llama", "mistral", "mixtral", "gemma", "gemma2", "gemma3_text", "qwen2", "qwen2_moe", "qwen3",
     "qwen3_moe", "phi3", "glm4", "olmo2", "olmo3", "granite", "smollm3", "exaone4", "hunyuan_v1_dense")
)  # fmt: skip

NAMES_MLP = ("gate", "up", "down")
"""Matrices whose names peft turns into those of stacks where experts are stacked: no dense layer's and no
shared expert's is adapted then. wheel:peft-0.21.2:peft/utils/transformers_weight_conversion.py"""


class Settings(NamedTuple):
    """What decides a layer's tape (bytes an element for `weight`, `stream`, `compute`)."""

    batch: int
    seq: int
    weight: int  # of a matrix as loaded
    vector: int  # of a norm or embedding
    stream: int  # of the residual stream
    compute: int  # of a matrix product's result
    autocast: bool
    trains: bool
    rank: int  # of the adapters; 0 without
    targets: str
    dropout: float
    adapter: int  # bytes an adapter's weight
    quant: str  # "", "nf4" or "int8"
    attn: str
    liger: bool
    tp: int
    fused_norm: bool = False
    loaded: int = 2  # bytes of a weight as loaded, before a trainer widens it
    reentrant: bool = False  # a checkpoint that recomputes to its end
    packed: bool = False  # several rows in one, which sdpa holds apart by a mask
    keeps_inputs: bool = False  # DeepSpeed's linear of stage 3 saves its input, trained or not
    dora: bool = False
    copies_table: bool = False  # peft's modules_to_save: a copy of the embedding is trained ...
    copies_head: bool = False  # ... or of the head
    copied: int = 2  # bytes a weight of such a copy
    padded: bool = False  # rows of a batch are filled up, which sdpa tells by a mask
    masked: bool = False  # the decoder sees images' tokens both ways, by a mask
    tower_frozen: bool = False
    tower_trains: bool = False  # the tower's own weights are trained
    stacked: bool = False  # peft's names of an MLP's matrices mean the stacks of experts

    @property
    def tokens(self) -> int:
        """Tokens of a micro batch."""
        return self.batch * self.seq

    @property
    def trains_head(self) -> bool:
        """True when the head's weight gets a gradient."""
        return self.trains or self.copies_head

    @property
    def trains_table(self) -> bool:
        """True when the embedding gets a gradient."""
        return self.trains or self.copies_table

    def targeted(self, role: str) -> bool:
        """True when an adapter sits on that linear."""
        if not self.rank:
            return False
        if self.targets == "all":
            return not (self.stacked and role.removeprefix("shared_") in NAMES_MLP)
        if self.targets == "attn":
            return role in NAMES_ATTENTION
        if self.targets == "qv":
            return role in ("q", "v", "qkv")
        return role in {name.removesuffix("_proj").strip() for name in self.targets.split(",")}


def _quant(run: TrainingRun) -> str:
    """How the adapted linears are stored: as asked, or as the files are (MXFP4 is unpacked to train)."""
    stored = run.shape.stored if run.shape.stored != "mxfp4" else ""
    if run.method == "qlora":
        return run.quant
    return stored if run.method == "lora" else ""


def settings_of(run: TrainingRun) -> Settings:
    """Return the settings of a run."""
    liger = run.liger and run.shape.model_type in LIGER_TYPES
    # DeepSpeed's first stages and FSDP compute with adapters cast to the weights' dtype, its third does not
    lowered = run.parallel in ("zero1", "zero2", "fsdp")
    zero = run.parallel.startswith("zero")  # DeepSpeed casts the whole module to its own dtype
    # nor can FSDP shard a unit of several dtypes: norms stay in that of the 4-bit weights' storage
    whole = not zero and run.parallel != "fsdp"
    upcast = run.method == "qlora" and run.upcast_kbit and run.recipe.kbit_upcast and whole
    # LLaMA-Factory widens trained weights but for pure_bf16, ZeRO-3 and FSDP; DeepSpeed casts them back
    casts = not zero and run.parallel != "fsdp" and run.amp != "none"
    widened = run.method == "full" and run.recipe.full_fp32 and casts
    mixed = run.parallel == "fsdp" and run.amp != "none"  # fully_shard gathers and computes in 16 bits
    weight = 2 if mixed else 4 if widened else run.weight_bytes
    outer = run.method == "full" and run.recipe.outer_fp32 and casts and run.attn != "flash_attention_2"
    vector = 4 if upcast or outer else weight
    copied = {name.strip() for name in run.modules_to_save.split(",")}
    low_adapters = lowered or (run.method == "qlora" and run.recipe.adapters_low)
    return Settings(
        batch=1 if run.packed else run.texts // run.turns,
        seq=run.texts * run.seq if run.packed else run.seq,
        weight=weight,
        vector=vector,
        stream=vector,
        compute=run.compute_bytes,
        autocast=run.autocast,
        trains=run.method == "full",
        rank=0 if run.method == "full" else run.lora_rank,
        targets=run.lora_targets,
        dropout=run.lora_dropout,
        adapter=4 if run.adapter_fp32 and not low_adapters else run.weight_bytes,
        packed=run.packed,
        reentrant=run.reentrant,
        loaded=run.weight_bytes,
        keeps_inputs=run.parallel == "zero3",
        dora=run.dora,
        copies_table=not copied.isdisjoint(TABLES),
        copies_head=not copied.isdisjoint(HEADS),
        copied=run.weight_bytes if low_adapters else vector,
        padded=run.uneven and not run.packed and run.texts > run.turns,
        masked=bool(run.images and run.shape.vision and run.shape.vision.both_ways),
        tower_frozen=run.frozen_tower,
        tower_trains=run.method == "full" and not run.frozen_tower and run.images != 0,
        stacked=bool(run.shape.experts and run.shape.expert_adapters),
        quant=_quant(run),
        attn="eager" if run.shape.eager_only and run.attn == "sdpa" else run.attn,
        liger=liger,
        tp=run.tp,
        fused_norm=liger,
    )
