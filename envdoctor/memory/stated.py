"""A run as a person states it, and the question of memory that it is once its names are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from envdoctor.errors import InputError, Unavailable
from envdoctor.facts import Facts
from envdoctor.matrix import Matrix, load_matrix, tables
from envdoctor.memory.answer import ANALYTIC, Question, Tier
from envdoctor.memory.catalogue import find_config, find_shape
from envdoctor.memory.constants import Constants, read_constants
from envdoctor.memory.deepspeed_file import read_deepspeed
from envdoctor.memory.optimizer import find_optimizer
from envdoctor.memory.recipes import recipe_of, shaped
from envdoctor.memory.run import USUAL_PIXELS, ServingRun, TrainingRun
from envdoctor.memory.serving import loaded_as
from envdoctor.memory.sglang import usual_settings
from envdoctor.memory.shape import ModelShape
from envdoctor.target.cards import Card, cards_in, named_cards, unsized
from envdoctor.target.stack import Stack, find_sites, parse_stack, read_stack, stack_of
from envdoctor.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class StatedRun:
    """What is run, in the words of `envdoctor memory`; lengths in tokens, `batch` in rows a card and step.

    `task` is sft, dpo, kto, orpo, reward, grpo, ppo, rloo, distill (from a `teacher`) or serve; `trainer`
    None is transformers', or trl's but for sft; `parallel` None is DDP on several cards; `deepspeed` is the
    path of a configuration; `quant` is nf4, int8 or hqq (qlora; None: nf4), or what a served model's plain
    weights become while they are loaded.
    """

    method: str = "full"
    task: str = "sft"
    trainer: str | None = None
    teacher: str | None = None
    packing: bool = False
    batch: int = 1
    seq: int = 2048
    shortest_row: int | None = None
    grad_accum: int = 1
    lora_rank: int = 8
    gpus: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    sp: int = 1
    ep: int = 1
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_completion: int | None = None
    num_generations: int | None = None
    vllm_utilization: float | None = None
    engine: str | None = None
    mem_fraction_static: float | None = None
    cuda_graph_max_bs: int | None = None
    enable_lora: bool = False
    max_loras: int | None = None
    max_lora_rank: int | None = None
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    dtype: str = "bf16"
    amp: str = "bf16"
    optim: str = "adamw_torch_fused"
    attn: str = "sdpa"
    liger: bool = False
    lora_targets: str = "all"
    lora_dropout: float | None = None
    dora: bool = False
    modules_to_save: str = ""
    quant: str | None = None
    grad_ckpt: bool = True
    double_quant: bool = True
    upcast_kbit: bool = True
    parallel: str | None = None
    offload_optimizer: bool = False
    offload_params: bool = False
    deepspeed: str | None = None
    expandable_segments: bool = False
    optim_rank: int = 0
    trained_layers: int = 0
    virtual_tokens: int = 0
    offload_activations: bool = False
    images: int | None = None
    image_size: str | None = None
    frozen_tower: bool | None = None

    @property
    def serves(self) -> bool:
        """True for an engine that serves."""
        return self.task == "serve"

    @property
    def trained_task(self) -> str:
        """The task by its own name."""
        return "sft" if self.task == "train" else self.task


_TAKEN_OVER = (
    "method", "batch", "seq", "shortest_row", "grad_accum", "dtype", "amp", "optim", "grad_ckpt", "attn",
    "liger", "gpus",
    "lora_rank", "lora_targets", "dora", "modules_to_save", "double_quant", "upcast_kbit",
    "tp", "pp", "cp", "sp", "ep", "packing", "expandable_segments", "max_completion", "vllm_utilization",
    "optim_rank", "trained_layers", "virtual_tokens", "offload_activations",
    "max_model_len", "max_num_seqs",
)  # fmt: skip
"""Settings that a stated run and a training run share."""
_SERVED = frozenset(
    ("task", "gpus", "tp", "pp", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
     "vllm_utilization", "kv_cache_dtype", "enforce_eager", "dtype", "quant",
     "engine", "mem_fraction_static", "cuda_graph_max_bs", "enable_lora", "max_loras", "max_lora_rank")
)  # fmt: skip
_ENGINES_ALONE = (
    "max_num_batched_tokens", "kv_cache_dtype", "enforce_eager", "engine", "mem_fraction_static",
    "cuda_graph_max_bs", "enable_lora", "max_loras", "max_lora_rank",
)  # fmt: skip
_OF_ENGINE = {
    "vllm": ("vllm_utilization", "max_num_seqs", "enable_lora"),
    "sglang": ("mem_fraction_static", "cuda_graph_max_bs"),
}
ENGINES = tuple(_OF_ENGINE)
_ADAPTERS_ALONE = ("lora_rank", "lora_targets", "lora_dropout", "dora", "modules_to_save")
_QLORAS_ALONE = ("quant", "double_quant", "upcast_kbit")


def _check_heard(stated: StatedRun) -> None:
    """Raise InputError for a setting that this kind of run would not hear of."""
    plain = StatedRun()
    said = [one.name for one in fields(stated) if getattr(stated, one.name) != getattr(plain, one.name)]
    if stated.serves:
        if stated.gpus not in (1, stated.tp * stated.pp):
            raise InputError(f"--gpus {stated.gpus}: --tp or --pp says how an engine shares its cards")
        _refuse([name for name in said if name not in _SERVED], "is of training, not of --task serve")
        return
    _refuse([name for name in said if name in _ENGINES_ALONE], "needs --task serve")
    if stated.method not in ("lora", "qlora"):
        _refuse([name for name in said if name in _ADAPTERS_ALONE], "needs --method lora or qlora")
    if stated.method != "qlora":
        _refuse([name for name in said if name in _QLORAS_ALONE], "needs --method qlora")


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise InputError(f"--{names[0].replace('_', '-')}: {why}")


def ask(
    model: str,
    stated: StatedRun,
    *,
    gpu: str | None = None,
    stack: str | None = None,
    facts: Facts | None = None,
    python: str | None = None,
    how: str | None = None,
) -> Question:
    """Return the question that a stated run of a model is, on a card and with versions.

    `stack` is `torch=2.9.1,…` (None: what `python`'s environment has); `facts` tell a card and versions
    where they are not stated, of several cards the smallest; `how` trace or measure. Raises
    InputError for what cannot be, Unavailable when no interpreter can be examined or none could trace.
    """
    matrix = load_matrix()
    cards = named_cards([gpu], matrix) if gpu else cards_in(facts, matrix) if facts else ()
    if gpu and len(cards) > 1:
        stated = replace(stated, gpus=_as_many(stated, len(cards), gpu))
    _check_heard(stated)
    card = min(cards, key=lambda one: one.memory_bytes or 0, default=None)
    if card is not None and not card.memory_bytes:
        raise unsized(card)
    examined = stack_of(facts) if facts else read_stack(python) if stack is None else Stack()
    versions = examined if stack is None else Stack(parse_stack(stack))
    shape = find_shape(model)
    constants = constants_on(card, versions, matrix)
    if stated.vllm_utilization is not None and not 0 <= stated.vllm_utilization <= 1:
        raise InputError(f"--vllm-utilization: {stated.vllm_utilization} is not in [0, 1]")
    run = (
        _serving_run(stated, shape, card, versions, matrix)
        if stated.serves
        else _training_run(stated, shape, versions, matrix)
    )
    if stated.amp == "fp8" and card and card.capability and not card.at_least(8, 9):
        raise InputError(f"--amp fp8: {card.name} has no products in FP8 (compute capability 8.9)")
    made = f"plain weights become {run.shape.stored} while they are loaded"
    becomes = made if stated.serves and run.shape.stored != shape.stored else ""
    notes = tuple(filter(None, (card.note if card else "", becomes)))
    size = card.memory_bytes if card else None
    return Question(run, constants, size, versions.versions, _tier_of(model, run, how, python), notes)


def _as_many(stated: StatedRun, named: int, gpu: str) -> int:
    """Return the cards that are named; raises InputError where --gpus says another number."""
    if stated.gpus not in (1, named):
        raise InputError(f"--gpus {stated.gpus}: --gpu {gpu} names {named}")
    return named


def constants_on(card: Card | None, stack: Stack, matrix: Matrix) -> Constants:
    """Return the matrix's figures for that stack and card."""
    capability = card.capability if card else None
    pair = (capability.major, capability.minor) if capability else None
    return read_constants(matrix.rows(tables.MemoryRow), stack.versions, pair)


def _training_run(stated: StatedRun, shape: ModelShape, stack: Stack, matrix: Matrix) -> TrainingRun:
    find_optimizer(stated.optim)
    sharding = _sharding(stated, shape.hidden)
    task = stated.trained_task
    _check_generations(stated, task)
    trainer = stated.trainer or ("transformers" if task == "sft" else "trl")
    recipe = recipe_of(matrix.rows(tables.TrainerRow), trainer, task, stack.versions)
    taken = {name: getattr(stated, name) for name in _TAKEN_OVER}
    taken["quant"] = stated.quant or "nf4"
    taken["expandable_segments"] = stated.expandable_segments or recipe.expandable_segments
    adapted = recipe.lora_dropout if stated.method in ("lora", "qlora") else 0.0
    taken["lora_dropout"] = adapted if stated.lora_dropout is None else stated.lora_dropout
    seen: dict[str, Any] = {
        "images": stated.images,
        "pixels": pixels_of(stated.image_size),
        "frozen_tower": recipe.frozen_tower if stated.frozen_tower is None else stated.frozen_tower,
    }
    return TrainingRun(
        shaped(shape, recipe), task=task, trainer=trainer, recipe=recipe, **taken, **sharding, **seen,
        teacher=find_shape(stated.teacher) if stated.teacher else None,
    )  # fmt: skip


def pixels_of(told: str | None) -> tuple[int, int]:
    """Return height and width of `HEIGHTxWIDTH`, or of one number for both; raises InputError."""
    if told is None:
        return USUAL_PIXELS
    sides = told.lower().replace("×", "x").split("x")
    if len(sides) > 2 or not all(side.strip().isdecimal() and len(side) <= 6 for side in sides):
        raise InputError(f"--image-size: {told!r} is no HEIGHTxWIDTH in pixels, such as 1024x768")
    return int(sides[0]), int(sides[-1])


def _check_generations(stated: StatedRun, task: str) -> None:
    """Raise InputError where the trainer would refuse the number of completions a prompt.

    It costs no memory of its own: --batch counts completions already.
    https://github.com/huggingface/trl/blob/main/trl/trainer/grpo_config.py
    """
    wanted = stated.num_generations
    if wanted is None:
        return
    if task not in ("grpo", "rloo"):
        raise InputError(f"--num-generations: only GRPO and RLOO have it, not {task}")
    rows = stated.batch * stated.gpus * stated.grad_accum
    if wanted < 2:
        raise InputError(f"--num-generations {wanted}: GRPO compares at least two")
    if rows % wanted:
        counted = "batch x cards x grad-accum"
        raise InputError(f"--num-generations {wanted}: does not divide the {rows} rows of a step ({counted})")


def _serving_run(
    stated: StatedRun, shape: ModelShape, card: Card | None, stack: Stack, matrix: Matrix
) -> ServingRun:
    if card is None or card.memory_bytes is None:
        raise InputError("--task serve: name a card with --gpu: an engine takes a share of it")
    engine = engine_of(stated.engine, stack.versions)
    _check_engine(stated, engine)
    share, chunk, graphs = stated.vllm_utilization, stated.max_num_batched_tokens, stated.max_num_seqs
    if engine == "sglang":
        rows, cards = matrix.rows(tables.StaticShareRow), (stated.tp, stated.pp)
        usual = usual_settings(
            rows, stack.versions.get("sglang"), card.memory_bytes, cards, shape.latent is not None,
            chunk, stated.cuda_graph_max_bs,
        )  # fmt: skip
        share = stated.mem_fraction_static
        if share is None and usual is None:
            raise InputError("--mem-fraction-static: what that release of SGLang takes is not known; say it")
        if usual is not None:
            share, chunk, graphs = share if share is not None else usual.share, usual.chunk, usual.graphs
    elif share is None:
        share = constants_on(card, stack, matrix).vllm_utilization_percent / 100
    assert share is not None
    return ServingRun(
        loaded_as(shape, stated.quant), card.memory_bytes, share, stated.dtype, stated.max_model_len,
        graphs, chunk, stated.tp, stated.pp,
        cuda_graphs=not stated.enforce_eager, card=card.name, kv_dtype=stated.kv_cache_dtype,
        largest_bytes=card.largest_bytes, engine=engine,
        lora_slots=(stated.max_loras or 1) if stated.enable_lora else 0, lora_rank=stated.max_lora_rank or 16,
    )  # fmt: skip


def engine_of(asked: str | None, versions: Mapping[str, str]) -> str:
    """Return the engine that is asked for, else the one that is installed alone, else vLLM."""
    if asked not in (None, *ENGINES):
        raise InputError(f"--engine: {asked!r} is none of {', '.join(ENGINES)}")
    alone = "sglang" if "sglang" in versions and "vllm" not in versions else "vllm"
    return asked or alone


def _check_engine(stated: StatedRun, engine: str) -> None:
    """Raise InputError for a setting of another engine than this one."""
    plain = StatedRun()
    if not stated.enable_lora and (stated.max_loras or stated.max_lora_rank):
        raise InputError("--max-loras and --max-lora-rank: need --enable-lora")
    for other, names in _OF_ENGINE.items():
        said = [name for name in names if getattr(stated, name) != getattr(plain, name)]
        if other != engine:
            _refuse(said, f"is of --engine {other}, not of {engine}")


def _sharding(stated: StatedRun, hidden: int) -> dict[str, Any]:
    parallel = stated.parallel or ("none" if stated.gpus == stated.tp * stated.pp else "ddp")
    found: dict[str, Any] = {
        "parallel": parallel,
        "offload_optimizer": stated.offload_optimizer,
        "offload_params": stated.offload_params,
    }
    if stated.deepspeed is None:
        return found
    file = read_deepspeed(stated.deepspeed, hidden)
    said = f"zero{file.stage}" if file.stage else "ddp"
    if stated.parallel not in (None, said):
        raise InputError(f"--parallel {stated.parallel}: {stated.deepspeed} says {said}")
    return {
        "parallel": said if stated.gpus > 1 or file.stage else "none",
        "offload_optimizer": stated.offload_optimizer or file.offload_optimizer,
        "offload_params": stated.offload_params or file.offload_params,
        "deepspeed": file.sizes,
    }


def _tier_of(model: str, run: TrainingRun | ServingRun, how: str | None, python: str | None) -> Tier:
    """Return the tier that was asked for, or the trace for a family that is not known; raises Unavailable."""
    if how is None and run.shape.known:
        return ANALYTIC
    serves = isinstance(run, ServingRun)
    if how is None and (serves or not _can_trace(read_stack(python))):
        raise Unavailable(
            f"--model {model}: model type {run.shape.model_type!r} is not known here, and a guess is no"
            " answer; --python with an interpreter that has torch and transformers traces it"
        )
    if serves:
        return ANALYTIC
    return Tier(how or "trace", find_config(model), find_sites(python)[0])


def _can_trace(examined: Stack) -> bool:
    """True when the examined environment, not a stated stack, has what a trace needs."""
    return examined.has("torch") and examined.has("transformers")
