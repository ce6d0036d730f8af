"""The settings of a run that a layer's code sees: widths of numbers, what is trained, which kernels."""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.layout import NAMES_ATTENTION
from envdoctor.memory.methods import has_kernels, scaled_linears
from envdoctor.memory.run import HEADS, TABLES, TrainingRun
from envdoctor.values import NamedTuple

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
    outer: bool = False  # embedding, last norm and head are trained
    active: int = 0  # layers whose own weights are trained, if not all
    lasting: int = 0  # layers whose states the optimizer keeps
    layered: int = 0  # bytes a weight of such a layer, if wider than the others
    scaled: tuple[str, ...] = ()  # linears whose result is scaled by a trained vector ...
    fed: tuple[str, ...] = ()  # ... and those whose input is
    before: int = 0  # trained tokens before each row
    kernels: bool = False  # axolotl's for LoRA
    cp: int = 1  # cards that share each row, keys and values gathered
    sp: int = 1  # cards that share each row, heads exchanged for it
    prefix: int = 0  # trained keys and values before those of each row
    eight: bool = False  # products of the layers in FP8, by torchao
    unfrozen: bool = False  # not trained, but nobody said so: autocast keeps its copies of such weights

    @property
    def tokens(self) -> int:
        """Tokens of a micro batch."""
        return self.batch * self.seq

    @property
    def trains_head(self) -> bool:
        """True when the head's weight gets a gradient."""
        return self.outer or self.copies_head

    @property
    def trains_table(self) -> bool:
        """True when the embedding gets a gradient."""
        return self.outer or self.copies_table

    @property
    def beside(self) -> Settings:
        """The settings of what lies outside the layers."""
        return self._replace(trains=self.outer)

    def of_layer(self, role: str) -> Settings:
        """The settings of a layer of that part of the model."""
        if role:
            return self._replace(trains=False)
        return self._replace(weight=self.layered, vector=self.layered) if self.layered else self

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


@lru_cache(maxsize=1024)
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
    widens = run.recipe.full_fp32 and casts
    widened = run.method in ("full", "lisa") and widens
    mixed = run.parallel == "fsdp" and run.amp != "none"  # fully_shard gathers and computes in 16 bits
    weight = 2 if mixed else 4 if widened else run.weight_bytes
    outer = run.trains.layers != "" and run.recipe.outer_fp32 and casts and run.attn != "flash_attention_2"
    vector = 4 if upcast or outer else weight
    copied = {name.strip() for name in run.modules_to_save.split(",")}
    low_adapters = lowered or (run.method == "qlora" and run.recipe.adapters_low)
    scaled, fed = scaled_linears(run.shape.model_type) if run.method == "ia3" else ((), ())
    return Settings(
        batch=1 if run.packed else run.texts // run.turns,
        seq=run.texts * run.length if run.packed else run.length,
        weight=weight,
        vector=vector,
        stream=vector,
        compute=run.compute_bytes,
        autocast=run.autocast,
        trains=bool(run.trains.layers),
        rank=run.lora_rank if run.adapts else 0,
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
        padded=not run.packed and (run.recipe.padded or (run.uneven and run.texts > run.turns)),
        masked=bool(run.images and run.shape.vision and run.shape.vision.both_ways),
        tower_frozen=run.frozen_tower,
        tower_trains=run.trains.outer and not run.frozen_tower and run.images != 0,
        stacked=bool(run.shape.experts and run.shape.expert_adapters),
        outer=run.trains.outer,
        active=run.active_layers if run.trains.layers not in ("", "all") else 0,
        lasting=run.shape.layers if run.trains.layers == "drawn" else run.active_layers,
        layered=4 if run.method == "freeze" and widens and run.weight_bytes < 4 else 0,
        scaled=scaled,
        fed=fed,
        kernels=run.recipe.adapter_kernels in (("plain", "dropout") if not run.lora_dropout else ("dropout",))
        and has_kernels(run.shape)
        and _quant(run) in ("", "nf4"),
        cp=run.cp,
        sp=run.sp,
        before=run.virtual if run.method == "prompt" else 0,
        prefix=run.virtual if run.method == "prefix" else 0,
        quant=_quant(run),
        eight=run.amp == "fp8",
        attn="eager" if run.shape.eager_only and run.attn == "sdpa" else run.attn,
        liger=liger,
        tp=run.tp,
        fused_norm=liger,
    )
