"""What is asked and what is answered: a training run, a serving run, and the prediction of their peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from envdoctor.errors import InputError
from envdoctor.memory.methods import METHODS, Method, scaled_linears
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.memory.parts import seeing_models
from envdoctor.memory.recipes import PLAIN, TASKS, Recipe
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.vision import LARGEST_IMAGE
from envdoctor.values import Shown, dataclass

DTYPES: Mapping[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4}
USUAL_PIXELS = (1024, 1024)
QUANTS = ("nf4", "int8", "hqq")
SPLITS = ("cp", "sp", "ep")
PARALLEL = ("none", "ddp", "zero1", "zero2", "zero3", "fsdp")
ATTENTION = ("eager", "sdpa", "flash_attention_2")
TABLES = ("embed_tokens", "embed_in", "wte", "word_embeddings")
HEADS = ("lm_head", "embed_out", "output_layer")
"""What the families call the embedding and the head, which peft copies to train them whole."""


@dataclass(frozen=True, slots=True)
class DeepSpeed:
    """DeepSpeed's sizes, in elements, as its zero_optimization section names them (its own defaults)."""

    reduce_bucket: int = 500_000_000
    allgather_bucket: int = 500_000_000
    prefetch_bucket: int = 50_000_000
    persistence_threshold: int = 100_000
    max_live: int = 1_000_000_000
    sub_group: int = 1_000_000_000
    overlap_comm: bool = False
    secondary: int = 1  # cards that share a second copy of the weights: ZeRO++'s zero_hpz_partition_size
    contiguous_gradients: bool = True


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One stated run of a trainer on `gpus` equal cards; `recipe` says what that trainer's release does.

    `batch` counts rows: a row of dpo, orpo and reward holds a chosen and a rejected text. Of a row's tokens
    `max_completion` are answer, where the task tells prompt and answer apart (default: half). Rows are all
    `seq` tokens long, or between `shortest_row` and that, filled up to the longest of their batch.
    """

    shape: ModelShape
    method: str = "full"
    batch: int = 1
    seq: int = 2048
    shortest_row: int | None = None
    grad_accum: int = 1
    dtype: str = "bf16"
    amp: str = "bf16"
    optim: str = "adamw_torch_fused"
    grad_ckpt: bool = True
    reentrant: bool = False
    attn: str = "sdpa"
    liger: bool = False
    lora_rank: int = 8
    lora_targets: str = "all"
    lora_dropout: float = 0.0
    adapter_fp32: bool = True
    quant: str = "nf4"
    double_quant: bool = True
    upcast_kbit: bool = True
    gpus: int = 1
    parallel: str = "none"
    offload_optimizer: bool = False
    offload_params: bool = False
    deepspeed: DeepSpeed = field(default_factory=DeepSpeed)
    meta_load: bool = True  # FSDP's fsdp_cpu_ram_efficient_loading
    fsdp_version: int = 2
    tp: int = 1
    pp: int = 1
    cp: int = 1  # cards that share each row, keys and values gathered
    sp: int = 1  # cards that share each row, heads exchanged for it in attention (Ulysses)
    ep: int = 1  # cards that share the experts of each layer
    task: str = "sft"
    trainer: str = "transformers"
    recipe: Recipe = PLAIN
    teacher: ModelShape | None = None  # of distill, in 16 bits
    packing: bool = False
    max_completion: int | None = None
    vllm_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    dora: bool = False
    modules_to_save: str = ""
    expandable_segments: bool = False
    optim_rank: int = 0  # of a projecting optimizer; 0 its own
    trained_layers: int = 0  # of freeze and LISA; 0 the method's own
    virtual_tokens: int = 0  # of prompt and prefix tuning; 0 peft's own
    offload_activations: bool = False
    images: int | None = None  # of a row; None is not told, and counts the tower as trained but idle
    pixels: tuple[int, int] = USUAL_PIXELS  # height and width of each, as the processor hands it on
    frozen_tower: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a contradiction or a size that cannot be."""
        for name in ("batch", "seq", "grad_accum", "lora_rank", "gpus", "tp", "pp", "cp", "sp", "ep"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')}: {getattr(self, name)} is no count")
        for name, known in (("method", tuple(METHODS)), ("dtype", tuple(DTYPES)), ("attn", ATTENTION)):
            if getattr(self, name) not in known:
                raise InputError(f"--{name}: {getattr(self, name)!r} is none of {', '.join(known)}")
        if self.task not in TASKS:
            raise InputError(f"--task: {self.task!r} is none of {', '.join((*TASKS, 'serve'))}")
        if self.parallel not in PARALLEL:
            raise InputError(f"--parallel: {self.parallel!r} is none of {', '.join(PARALLEL)}")
        if self.amp not in ("bf16", "fp16", "fp8", "none"):
            raise InputError(f"--amp: {self.amp!r} is none of bf16, fp16, fp8, none")
        if self.quant not in QUANTS:
            raise InputError(f"--quant: {self.quant!r} is none of {', '.join(QUANTS)}")
        _check_agreement(self)

    @property
    def trains(self) -> Method:
        """What of the model is trained."""
        return METHODS[self.method]

    @property
    def adapts(self) -> bool:
        """True when LoRA's adapters are trained."""
        return self.method in ("lora", "qlora")

    @property
    def active_layers(self) -> int:
        """Layers whose own weights are trained at a time."""
        known = self.trains
        some = min(self.trained_layers or known.trained, self.shape.layers)
        return {"": 0, "all": self.shape.layers}.get(known.layers, some)

    @property
    def virtual(self) -> int:
        """Tokens that are trained in the place of weights."""
        return (self.virtual_tokens or self.trains.virtual) if self.trains.virtual else 0

    @property
    def length(self) -> int:
        """Tokens of a row as the layers of one card see it: prompt tuning puts its own before."""
        return (self.seq + (self.virtual if self.method == "prompt" else 0)) // self.shares

    @property
    def weight_bytes(self) -> int:
        """Bytes of a weight as loaded."""
        return DTYPES[self.dtype]

    @property
    def texts(self) -> int:
        """Texts of a micro batch: two for each row of a comparison."""
        return self.batch * self.recipe.texts

    @property
    def turns(self) -> int:
        """Forward passes of a micro batch, whose graphs are all kept until the loss is done."""
        return self.recipe.texts if self.recipe.apart else 1

    @property
    def uneven(self) -> bool:
        """True when rows differ in length."""
        return self.shortest_row is not None and self.shortest_row < self.seq

    @property
    def packed(self) -> bool:
        """True when the rows of a micro batch follow each other, held apart by a mask or by the kernel."""
        return self.packing or self.recipe.packed

    @property
    def completion(self) -> int:
        """Tokens of a text that are answer."""
        return min(self.seq, self.max_completion or max(1, self.seq // 2)) // self.shares

    @property
    def scored(self) -> int:
        """Tokens of a micro batch that the loss looks at."""
        if self.recipe.scored == "completion":
            return self.texts * self.completion
        if self.recipe.scored == "answers" and self.max_completion:
            return self.texts * min(self.seq, self.completion + 1)
        return self.texts * (max(1, self.length - 1) if self.recipe.loss != "full" else self.length)

    @property
    def compute_bytes(self) -> int:
        """Bytes of an activation that a matrix product writes."""
        return 2 if self.autocast else self.weight_bytes

    @property
    def autocast(self) -> bool:
        """True when torch's autocast wraps the forward pass (DeepSpeed computes in its own dtype)."""
        return self.amp != "none" and not self.parallel.startswith("zero")

    @property
    def replicas(self) -> int:
        """Cards that hold the same slice of the model and share its data: what ZeRO, FSDP and DDP span."""
        return max(1, self.gpus // (self.tp * self.pp * self.ep))

    @property
    def shares(self) -> int:
        """Cards that share each row."""
        return self.cp * self.sp


def _check_agreement(run: TrainingRun) -> None:
    if not 0 <= run.lora_dropout < 1:
        raise InputError(f"--lora-dropout: {run.lora_dropout} is no probability below 1")
    if run.gpus % (run.tp * run.pp):
        raise InputError(f"--gpus {run.gpus} is no multiple of --tp {run.tp} times --pp {run.pp}")
    if run.parallel not in ("none", "zero1", "zero2", "zero3") and run.gpus == 1:
        raise InputError(f"--parallel {run.parallel} needs --gpus of 2 or more")
    if (run.offload_optimizer or run.offload_params) and not run.parallel.startswith(("zero", "fsdp")):
        raise InputError(
            "--offload-optimizer and --offload-params need --parallel zero1, zero2, zero3 or fsdp"
        )
    if run.offload_params and run.parallel in ("zero1", "zero2"):
        raise InputError(f"--offload-params needs --parallel zero3 or fsdp, not {run.parallel}")
    if run.shortest_row is not None and not 1 <= run.shortest_row <= run.seq:
        raise InputError(f"--shortest-row {run.shortest_row}: rows have 1 to {run.seq} tokens (--seq)")
    if run.seq > run.shape.learned_positions > 0:
        raise InputError(f"--seq {run.seq}: the model knows {run.shape.learned_positions} positions")
    if run.amp == "fp16" and run.dtype == "fp16" and run.method == "full":
        raise InputError("--amp fp16 with --dtype fp16: torch's GradScaler cannot unscale fp16 gradients")
    if run.amp == "fp8":
        _check_eight_bits(run)
    _check_targets(run)
    _check_adapters(run)
    _check_method(run)
    if run.trains.layers and run.shape.stored not in ("", "mxfp4"):
        raise InputError(f"--method full: the weights of {run.shape.name} are stored as {run.shape.stored}")
    if run.attn == "flash_attention_2" and run.dtype == "fp32" and run.amp == "none":
        raise InputError(
            "--attn flash_attention_2 with --dtype fp32 --amp none: its kernels take 16 bits only"
        )
    _check_splits(run)
    _check_teacher(run)
    if run.shape.hidden % run.tp or run.shape.heads % run.tp:
        raise InputError(f"--tp {run.tp} does not divide {run.shape.heads} heads")
    if run.pp > run.shape.layers:
        raise InputError(f"--pp {run.pp}: the model has {run.shape.layers} layers")
    _check_images(run)


def _check_images(run: TrainingRun) -> None:
    """Raise InputError for images that the model does not take, or that the rows are too short for."""
    if not run.images:
        return
    if run.images < 0:
        raise InputError(f"--images: {run.images} is no count")
    v = run.shape.vision
    if v is None:
        known = ", ".join(kind for kind, row in seeing_models().items() if row.tower)
        raise InputError(f"--images: of {run.shape.name} is not known what they cost (it is of {known})")
    if not v.fixed and not all(v.patch * v.merge <= side <= LARGEST_IMAGE for side in run.pixels):
        raise InputError(f"--image-size: {run.pixels[0]}x{run.pixels[1]} is no size of an image")
    tokens = run.images * v.tokens(*v.sides(run.pixels))
    if tokens > (least := run.shortest_row or run.seq):
        one = "x".join(map(str, v.sides(run.pixels)))
        told = "--seq" if least == run.seq else "--shortest-row"
        raise InputError(f"{told} {least}: {run.images} images of {one} alone are {tokens} tokens")


def _check_teacher(run: TrainingRun) -> None:
    """Raise InputError for a task that lacks its teacher, or a teacher whose vocabulary is another."""
    if (run.task == "distill") != (run.teacher is not None):
        raise InputError("--task distill: needs --teacher MODEL, and no other task has one")
    if run.teacher is None:
        return
    if run.teacher.vocab != run.shape.vocab:
        told = f"{run.teacher.name} has {run.teacher.vocab} tokens and {run.shape.name} {run.shape.vocab}"
        raise InputError(f"--teacher: {told}: a divergence needs one vocabulary")
    if run.parallel not in ("none", "ddp") or run.tp * run.pp * run.shares * run.ep > 1:
        raise InputError("--task distill: counted where each card holds both models alone")


def _check_splits(run: TrainingRun) -> None:
    """Raise InputError where rows or experts cannot be shared as is told."""
    if run.gpus % (run.tp * run.pp * run.shares * run.ep):
        told = " times ".join(f"--{name} {getattr(run, name)}" for name in ("tp", "pp", *SPLITS))
        raise InputError(f"--gpus {run.gpus} is no multiple of {told}")
    if run.shares > 1:
        if run.seq % run.shares or run.uneven or run.images:
            raise InputError(f"--seq {run.seq}: --cp times --sp shares rows of one length, evenly")
        if run.attn == "eager" or run.recipe.generates:
            raise InputError("--cp and --sp: not with eager attention, nor with a task that writes texts")
        if run.trainer == "llamafactory":
            raise InputError("--cp and --sp: LLaMA-Factory's trainer shares no rows")
        needs = {"cp": ("fsdp",), "sp": ("zero1", "zero2", "zero3")}
        for name, ways in needs.items():
            own = run.trainer in ("transformers", "trl")
            if getattr(run, name) > 1 and own and run.parallel not in ways:
                raise InputError(f"--{name}: accelerate has it with --parallel {' or '.join(ways)} alone")
    if run.shape.heads % run.sp:
        raise InputError(f"--sp {run.sp} does not divide {run.shape.heads} heads")
    if run.ep > 1 and (run.shape.experts is None or run.shape.experts.count % run.ep):
        raise InputError(f"--ep {run.ep}: {run.shape.name} has no experts that so many cards share evenly")
    if run.ep > 1 and run.parallel not in ("none", "ddp"):
        raise InputError(f"--ep {run.ep}: counted without ZeRO and FSDP, not with --parallel {run.parallel}")


def _check_method(run: TrainingRun) -> None:
    """Raise InputError for what a method cannot do, or is not counted with."""
    if run.trained_layers and run.trains.layers not in ("last", "drawn"):
        raise InputError(f"--trained-layers: of --method freeze and lisa, not of {run.method}")
    if run.trains.layers == "drawn" and not run.trained_layers:
        raise InputError("--method lisa: say how many layers are trained at a time (--trained-layers)")
    if run.trained_layers > run.shape.layers:
        raise InputError(f"--trained-layers {run.trained_layers}: the model has {run.shape.layers}")
    if run.virtual_tokens and not run.trains.virtual:
        raise InputError(f"--virtual-tokens: of --method prompt and prefix, not of {run.method}")
    if run.method == "prefix" and run.grad_ckpt:
        raise InputError("--method prefix: peft refuses it with gradient checkpointing (--no-grad-ckpt)")
    if run.method == "ia3":
        scaled_linears(run.shape.model_type)
    plain = run.parallel in ("none", "ddp") and run.tp * run.pp * run.shares * run.ep == 1
    if run.method not in ("full", "lora", "qlora") and not plain:
        raise InputError(f"--method {run.method}: counted where each card holds the whole model alone")
    if run.method not in ("full", "lora", "qlora") and run.images:
        raise InputError(f"--method {run.method}: not counted with --images")
    if run.offload_activations and not run.grad_ckpt:
        raise InputError("--offload-activations: counted with gradient checkpointing alone (--grad-ckpt)")
    if run.offload_activations and not plain:
        raise InputError("--offload-activations: counted where each card holds the whole model alone")
    optimizer = find_optimizer(run.optim)
    if not (optimizer.matrices or optimizer.layerwise):
        return
    if not run.trains.layers or run.method == "badam":
        raise InputError(f"--optim {run.optim}: steps whole weights, not what --method {run.method} trains")
    if run.parallel not in ("none", *(() if optimizer.layerwise else ("ddp",))) or not plain:
        whole = "on one card alone" if optimizer.layerwise else "where each card holds the model whole"
        raise InputError(f"--optim {run.optim}: steps weights that are not shared out; counted {whole}")
    if optimizer.trainers and run.trainer not in optimizer.trainers:
        those = " or ".join(optimizer.trainers)
        raise InputError(f"--optim {run.optim}: {run.trainer} has none (--trainer {those})")
    if optimizer.layerwise and run.grad_accum > 1:
        raise InputError(f"--optim {run.optim}: steps each weight at once, so not with --grad-accum")


def _check_eight_bits(run: TrainingRun) -> None:
    """Raise InputError where products in 8 bits are not computed, or not counted.

    LLaMA-Factory's step asked for the same blocks with and without its fp8.
    https://github.com/hiyouga/LLaMA-Factory/blob/v0.9.5/src/llamafactory/hparams/parser.py
    """
    if run.trainer == "llamafactory":
        raise InputError("--amp fp8: LLaMA-Factory's Trainer computes in bf16 all the same (--amp bf16)")
    if run.method == "qlora" or run.shape.stored:
        raise InputError("--amp fp8: takes weights of 16 or 32 bits, not quantised ones")
    if run.parallel not in ("none", "ddp") or run.tp * run.pp * run.shares * run.ep > 1:
        raise InputError("--amp fp8: counted where each card holds the whole model alone")
    if run.shape.experts or run.images or run.dora:
        raise InputError("--amp fp8: not counted with experts, with --images or with --dora")


def _check_targets(run: TrainingRun) -> None:
    """Raise InputError for a name that no linear of the model has."""
    if not run.adapts or run.lora_targets in ("all", "attn", "qv"):
        return
    from envdoctor.memory.layout import roles

    known = roles(run.shape)
    for name in run.lora_targets.split(","):
        if name.strip().removesuffix("_proj") not in known:
            told = ", ".join(sorted(known))
            raise InputError(f"--lora-targets: {name.strip()!r} is no linear of {run.shape.name} ({told})")


def _check_adapters(run: TrainingRun) -> None:
    """Raise InputError for what peft would refuse, and for a module whose copy is not counted."""
    if not run.adapts and (run.dora or run.modules_to_save):
        raise InputError("--dora and --modules-to-save need --method lora or qlora")
    if run.dora and run.shape.experts and run.shape.expert_adapters and run.lora_targets == "all":
        raise InputError("--dora: peft has none for stacks of experts; name --lora-targets beside them")
    for name in filter(None, run.modules_to_save.split(",")):
        if name.strip() not in (*TABLES, *HEADS):
            known = ", ".join((*TABLES, *HEADS))
            raise InputError(
                f"--modules-to-save: the copy of {name.strip()!r} is not counted; of {known} it is"
            )


@dataclass(frozen=True, slots=True)
class ServingRun:
    """An engine, vLLM or SGLang: weights of `dtype` on `tp` × `pp` cards of `gpu_bytes` each, called `card`.

    `utilization` is the share that it is given, for SGLang its mem_fraction_static; there `max_num_seqs` is
    the largest CUDA graph and `max_batched_tokens` a chunk of a prompt.

    A card that is sold in several sizes has the smallest in `gpu_bytes`, in `largest_bytes` the largest.
    """

    shape: ModelShape
    gpu_bytes: int
    utilization: float
    dtype: str = "bf16"
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    tp: int = 1
    pp: int = 1
    cuda_graphs: bool = True
    beside_bytes: int = 0
    card: str = ""
    kv_dtype: str = "auto"  # of keys and values, as --kv-cache-dtype names it
    largest_bytes: int = 0
    engine: str = "vllm"
    lora_slots: int = 0  # adapters on a card at a time
    lora_rank: int = 16  # of the largest

    @property
    def key_bytes(self) -> int:
        """Bytes of one number of a key or value."""
        return 1 if self.kv_dtype.startswith("fp8") else DTYPES[self.dtype]

    def __post_init__(self) -> None:
        """Raise InputError for a utilisation, a split or a size that cannot be."""
        if not 0 < self.utilization <= 1:
            told = "--mem-fraction-static" if self.engine == "sglang" else "--vllm-utilization"
            raise InputError(f"{told}: {self.utilization} is not in (0, 1]")
        if self.gpu_bytes <= 0:
            raise InputError("--gpu: a card without memory")
        if self.dtype not in DTYPES:
            raise InputError(f"--dtype: {self.dtype!r} is none of {', '.join(DTYPES)}")
        if self.kv_dtype not in ("auto", *DTYPES) and not self.kv_dtype.startswith("fp8"):
            raise InputError(f"--kv-cache-dtype: {self.kv_dtype!r} is neither auto nor fp8")
        if self.tp < 1 or self.shape.heads % self.tp:
            raise InputError(f"--tp {self.tp} does not divide {self.shape.heads} heads")
        if not 1 <= self.pp <= self.shape.layers:
            raise InputError(f"--pp {self.pp}: the model has {self.shape.layers} layers")
        if self.lora_slots < 0 or self.lora_rank < 1:
            raise InputError(f"--max-loras {self.lora_slots}, --max-lora-rank {self.lora_rank}: no counts")
        for name in ("max_model_len", "max_num_seqs", "max_batched_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')}: {value} is no count")


@dataclass(frozen=True, slots=True)
class Component:
    """A named part of the peak, in bytes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Prediction(Shown):
    """The peak of a run on rank 0, in bytes, and the phase it falls in.

    `peak_allocated_bytes` is the expected `torch.cuda.max_memory_allocated`, `peak_reserved_bytes` an upper
    bound of `max_memory_reserved`, of which torch gives `idle_bytes` back when the card is full;
    `device_bytes` is the rest with what lies `outside` torch: what must fit on the card.
    """

    peak_allocated_bytes: int
    peak_reserved_bytes: int
    device_bytes: int
    load_peak_bytes: int
    phase: str
    components: tuple[Component, ...]
    phases: Mapping[str, int]
    method: str = "analytic"
    assumptions: tuple[str, ...] = ()
    uncertain: str = ""
    refused: str = ""
    outside: tuple[Component, ...] = ()
    idle_bytes: int = 0

    def fits(self, gpu_bytes: int | None) -> bool | None:
        """True when it fits a card of that size and starts there; None when the card is not known."""
        if self.refused:
            return False
        return None if gpu_bytes is None else self.device_bytes <= gpu_bytes

    def to_json(self, gpu_bytes: int | None = None) -> dict[str, Any]:
        """The contract's `envdoctor.memory/1` object."""
        return {
            "schema": "envdoctor.memory/1",
            "peak_allocated_bytes": self.peak_allocated_bytes,
            "peak_reserved_bytes": self.peak_reserved_bytes,
            "device_bytes": self.device_bytes,
            **({"idle_bytes": self.idle_bytes} if self.idle_bytes else {}),
            "load_peak_bytes": self.load_peak_bytes,
            "phase": self.phase,
            "phases": dict(self.phases),
            "components": [{"name": c.name, "bytes": c.bytes} for c in self.components],
            "method": self.method,
            "fits": self.fits(gpu_bytes),
            "gpu_bytes": gpu_bytes,
            "assumptions": list(self.assumptions),
            "outside": [{"name": c.name, "bytes": c.bytes} for c in self.outside],
            "uncertain": self.uncertain or None,
        }
