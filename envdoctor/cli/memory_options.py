"""The options that state a run, and the values made of them."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from envdoctor.cli.options import add, add_flag
from envdoctor.errors import InputError, Unavailable
from envdoctor.matrix import tables

if TYPE_CHECKING:
    from envdoctor.facts import Gpu
    from envdoctor.memory import Constants, ServingRun, TrainingRun
    from envdoctor.memory.answer import Tier
    from envdoctor.memory.recipes import Recipe
    from envdoctor.probes.interpreter import Interpreter

STACK_NAMES = (
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "bitsandbytes",
    "deepspeed",
    "liger-kernel",
    "trl",
    "llamafactory",
    "ms-swift",
    "axolotl",
    "vllm",
)
COUNTS = {
    "batch": (1, "rows a card takes in one step"),
    "seq": (2048, "tokens of a row (prompt and answer together)"),
    "grad-accum": (1, "steps whose gradients are summed before the optimizer's"),
    "lora-rank": (8, "rank of the adapters"),
    "gpus": (1, "cards of this run, all nodes together"),
    "tp": (1, "cards that share each layer (tensor parallel)"),
    "pp": (1, "groups of layers on cards of their own (pipeline parallel)"),
    "max-model-len": (None, "serving: longest request in tokens (default: the model's own)"),
    "max-num-seqs": (None, "serving: requests at a time (default: the engine's own)"),
    "max-completion": (None, "GRPO, PPO: tokens generated for a prompt, of --seq (default: the trainer's)"),
    "num-generations": (None, "GRPO: completions of one prompt, a share of the whole batch"),
}
"""Options with a number: its default, and what it counts."""

SWITCHES = {
    "--grad-ckpt": "gradient checkpointing: keep each layer's input alone, compute the rest again (on)",
    "--double-quant": "quantize the constants of 4-bit weights as well (on)",
    "--upcast-kbit": "norms and head in fp32, as prepare_model_for_kbit_training makes them (on)",
}


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare everything that states a run."""
    tasks = ("sft", "train", "dpo", "kto", "orpo", "reward", "grpo", "ppo", "serve")
    trainers = ("transformers", "trl", "llamafactory", "ms-swift", "axolotl")
    add(parser, "--model", "M", "folder, config.json, catalogue name or Hub id", required=True)
    add(parser, "--method", "full|lora|qlora", "what is trained", default="full")
    add(parser, "--task", "TASK", f"{', '.join(tasks)} (train is sft)", choices=tasks, default="sft")
    whose = f"whose loss and upcasts: {', '.join(trainers)} (transformers; trl but for sft)"
    add(parser, "--trainer", "TRAINER", whose, choices=trainers)
    add_flag(parser, "--packing", "rows follow each other without padding")
    for name, (default, meaning) in COUNTS.items():
        said = meaning if default is None else f"{meaning} ({default})"
        add(parser, f"--{name}", "N", said, type=int, default=default)
    _add_numbers(parser)
    _add_sharding(parser)
    add(parser, "--vllm-utilization", "F", "share of the card that vLLM may take", type=float)
    add(parser, "--gpu", "NAME", "the card it must fit")
    add(parser, "--stack", "NAME=VERSION,…", "versions (default: the examined environment's)")
    add(parser, "--python", "PATH", "the interpreter to examine")
    how = parser.add_mutually_exclusive_group()
    add_flag(how, "--trace", "trace the real model class on the CPU (needs torch there)")
    add_flag(how, "--measure", "run a two-layer slice on this machine's card")


def _add_numbers(parser: argparse.ArgumentParser) -> None:
    switch = argparse.BooleanOptionalAction
    add(parser, "--dtype", "bf16|fp16|fp32", "weights as loaded", default="bf16")
    add(parser, "--amp", "bf16|fp16|none", "autocast", default="bf16")
    add(parser, "--optim", "NAME", "transformers' name", default="adamw_torch_fused")
    add(parser, "--attn", "eager|sdpa|flash_attention_2", "attention", default="sdpa")
    add_flag(parser, "--liger", "Liger's kernels and fused loss")
    add(parser, "--lora-targets", "all|attn|qv|NAME,…", "where the adapters are", default="all")
    add(parser, "--lora-dropout", "P", "dropout of the adapters", type=float, default=0.0)
    add(parser, "--quant", "nf4|int8", "of the weights", default="nf4")
    for name, meaning in SWITCHES.items():
        parser.add_argument(name, action=switch, default=True, help=meaning)


def _add_sharding(parser: argparse.ArgumentParser) -> None:
    add(parser, "--parallel", "none|ddp|zero1|zero2|zero3|fsdp", "how the cards share the work")
    add_flag(parser, "--offload-optimizer", "the optimizer's states in host memory")
    add_flag(parser, "--offload-params", "the weights in host memory")
    add(parser, "--deepspeed", "FILE", "DeepSpeed's JSON configuration")


def gpu_of(args: argparse.Namespace) -> tuple[Gpu | None, str]:
    """Return the declared card and what was taken for it, such as the smallest of several sizes.

    Raises InputError for an unknown name or a card without memory.
    """
    if args.gpu is None:
        return None, ""
    from envdoctor.matrix import load_matrix
    from envdoctor.matrix.gpus import declared_gpu
    from envdoctor.memory.editions import with_memory

    if re.search(r"(?<![\d.])0+\s*g(i?b)?\b", args.gpu.lower()):
        raise InputError(f"--gpu {args.gpu}: a card without memory")
    matrix = load_matrix()
    return with_memory(matrix, declared_gpu(matrix, args.gpu), args.gpu)


def run_of(args: argparse.Namespace, gpu: Gpu | None) -> TrainingRun | ServingRun:
    """Return the stated run; raises InputError for what cannot be."""
    from envdoctor.memory.shape import find_shape

    shape = find_shape(args.model)
    if args.vllm_utilization is not None and not 0 <= args.vllm_utilization <= 1:
        raise InputError(f"--vllm-utilization: {args.vllm_utilization} is not in [0, 1]")
    if args.task == "serve":
        return _serving_run(args, shape, gpu)
    from envdoctor.memory.optimizer import find_optimizer
    from envdoctor.memory.recipes import shaped
    from envdoctor.memory.run import TrainingRun

    find_optimizer(args.optim)
    sharding = _sharding(args, shape.hidden)
    task = "sft" if args.task == "train" else args.task
    _check_generations(args, task)
    trainer = args.trainer or ("transformers" if task == "sft" else "trl")
    recipe = recipe_for(stack_of(args), trainer, task)
    return TrainingRun(
        shaped(shape, recipe),
        method=args.method, batch=args.batch, seq=args.seq, grad_accum=args.grad_accum, dtype=args.dtype,
        amp=args.amp, optim=args.optim, grad_ckpt=args.grad_ckpt, attn=args.attn, liger=args.liger,
        lora_rank=args.lora_rank, lora_targets=args.lora_targets, lora_dropout=args.lora_dropout,
        quant=args.quant, double_quant=args.double_quant, upcast_kbit=args.upcast_kbit, gpus=args.gpus,
        tp=args.tp, pp=args.pp, task=task, trainer=trainer, recipe=recipe, packing=args.packing,
        max_completion=args.max_completion, vllm_utilization=args.vllm_utilization,
        max_model_len=args.max_model_len, max_num_seqs=args.max_num_seqs, **sharding,
    )  # fmt: skip


def _check_generations(args: argparse.Namespace, task: str) -> None:
    """Raise InputError where the trainer would refuse the number of completions a prompt.

    It costs no memory of its own: --batch counts completions already.
    https://github.com/huggingface/trl/blob/main/trl/trainer/grpo_config.py
    """
    wanted = args.num_generations
    if wanted is None:
        return
    if task != "grpo":
        raise InputError(f"--num-generations: only GRPO has it, not {task}")
    rows = args.batch * args.gpus * args.grad_accum
    if wanted < 2:
        raise InputError(f"--num-generations {wanted}: GRPO compares at least two")
    if rows % wanted:
        counted = "batch x cards x grad-accum"
        raise InputError(f"--num-generations {wanted}: does not divide the {rows} rows of a step ({counted})")


def recipe_for(stack: dict[str, str], trainer: str, task: str) -> Recipe:
    """Return what that trainer's release does; raises InputError for a task that it is not known to have."""
    from envdoctor.matrix import load_matrix
    from envdoctor.memory.recipes import recipe_of

    return recipe_of(load_matrix().rows(tables.TrainerRow), trainer, task, stack)


def _serving_run(args: argparse.Namespace, shape: Any, gpu: Gpu | None) -> ServingRun:
    from envdoctor.memory.run import ServingRun

    if gpu is None or gpu.memory_total_bytes is None:
        raise InputError("--task serve: name a card with --gpu: vLLM takes a share of it")
    share = args.vllm_utilization
    if share is None:
        share = constants_of(stack_of(args), gpu).vllm_utilization_percent / 100
    return ServingRun(
        shape, gpu.memory_total_bytes, share, args.dtype, args.max_model_len, args.max_num_seqs,
        tp=args.tp, pp=args.pp,
    )  # fmt: skip


def _sharding(args: argparse.Namespace, hidden: int) -> dict[str, Any]:
    parallel = args.parallel or ("none" if args.gpus == args.tp * args.pp else "ddp")
    found: dict[str, Any] = {
        "parallel": parallel,
        "offload_optimizer": args.offload_optimizer,
        "offload_params": args.offload_params,
    }
    if args.deepspeed is None:
        return found
    from envdoctor.memory.deepspeed_file import read_deepspeed

    file = read_deepspeed(args.deepspeed, hidden)
    stated = f"zero{file.stage}" if file.stage else "ddp"
    if args.parallel not in (None, stated):
        raise InputError(f"--parallel {args.parallel}: {args.deepspeed} says {stated}")
    return {
        "parallel": stated if args.gpus > 1 or file.stage else "none",
        "offload_optimizer": args.offload_optimizer or file.offload_optimizer,
        "offload_params": args.offload_params or file.offload_params,
        "deepspeed": file.sizes,
    }


def stack_of(args: argparse.Namespace) -> dict[str, str]:
    """Return the stated versions, else those of the examined environment, by distribution."""
    if args.stack is None:
        return _examined_stack(args.python)
    found: dict[str, str] = {}
    for part in args.stack.split(","):
        name, separator, version = part.strip().partition("=")
        if not separator or not name or not version.strip("="):
            raise InputError(f"--stack {part}: expected NAME=VERSION")
        found[name.lower().replace("_", "-")] = version.strip("=")
    return found


def _examined_stack(python: str | None) -> dict[str, str]:
    from envdoctor.probes.files import Unreadable, list_names

    found: dict[str, str] = {}
    try:
        entries = [entry for site in reversed(_interpreter(python).sites) for entry in list_names(site)]
    except Unreadable as error:
        raise Unavailable(f"--python: {error}") from None
    for entry in entries:
        name, _, version = entry.removesuffix(".dist-info").partition("-")
        if entry.endswith(".dist-info") and name.replace("_", "-").lower() in STACK_NAMES:
            found[name.replace("_", "-").lower()] = version
    return found


def _interpreter(python: str | None) -> Interpreter:
    from envdoctor.probes import NoInterpreter, NotKnown
    from envdoctor.probes.interpreter import find_interpreter
    from envdoctor.probes.machine import Machine

    try:
        return find_interpreter(Machine(python=python))
    except NoInterpreter as error:
        raise InputError(f"--python: {error}") from None
    except NotKnown as error:
        raise Unavailable(f"--python: {error}") from None


def tier_of(args: argparse.Namespace, run: TrainingRun | ServingRun) -> Tier:
    """Return the tier that was asked for, or the trace for a family that is not known.

    Raises Unavailable when no interpreter can be examined, or none that could trace.
    """
    from envdoctor.memory.answer import ANALYTIC, Tier

    asked = args.trace or args.measure
    if not asked and run.shape.known:
        return ANALYTIC
    if not asked and not _can_trace(args):
        raise Unavailable(
            f"--model {args.model}: model type {run.shape.model_type!r} is not known here, and a guess is no"
            " answer; --python with an interpreter that has torch and transformers traces it"
        )
    if args.task == "serve":
        return ANALYTIC
    from envdoctor.memory.shape import find_config

    executable = _interpreter(args.python).executable
    return Tier("measure" if args.measure else "trace", find_config(args.model), executable)


def _can_trace(args: argparse.Namespace) -> bool:
    """True when the examined environment, not a stated stack, has what a trace needs."""
    found = _examined_stack(args.python)
    return args.task != "serve" and "torch" in found and "transformers" in found


def constants_of(stack: dict[str, str], gpu: Gpu | None) -> Constants:
    """Return the matrix's figures for that stack and card."""
    from envdoctor.matrix import load_matrix
    from envdoctor.memory.constants import read_constants

    capability = gpu.compute_capability if gpu else None
    pair = (capability.major, capability.minor) if capability else None
    return read_constants(load_matrix().rows(tables.MemoryRow), stack, pair)
