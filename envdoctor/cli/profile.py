"""`envdoctor profile`: the fastest memory-safe setting, in a framework's own format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdoctor.cli.options import add, add_flag, add_list
from envdoctor.cli.output import look_of, note, write
from envdoctor.errors import InputError, Unavailable
from envdoctor.matrix import tables

if TYPE_CHECKING:
    from envdoctor.facts import Facts, Gpu
    from envdoctor.matrix import Matrix
    from envdoctor.profile.choosing import Profile
    from envdoctor.profile.workload import Card, Stack, Workload

GIB = 1 << 30


EXAMPLES = (
    (
        "the fastest setting that fits a 4090, for LLaMA-Factory",
        "--model qwen2.5-7b --gpu 'RTX 4090' --for llamafactory -o run",
    ),
    ("full training on eight cards", "--model llama-3.1-8b --method full --gpus 8 --gpu A100"),
    ("serving", "--model qwen2.5-7b --for vllm --gpu L40S"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `profile`."""
    methods, tasks = ("auto", "full", "lora", "qlora"), ("sft", "grpo", "serve")
    add(parser, "--model", "M", "a folder, config.json, known name or Hub id", required=True)
    add(
        parser,
        "--method",
        "METHOD",
        f"what is trained: {', '.join(methods)}",
        choices=methods,
        default="auto",
    )
    add(parser, "--task", "TASK", f"what the cards are for: {', '.join(tasks)}", choices=tasks, default="sft")
    add(parser, "--seq", "N", "tokens of the longest sample (2048)", type=int)
    add(parser, "--global-batch", "N", "samples of one optimizer step (16)", type=int)
    add_list(parser, "--gpu", "NAME", "a card in place of this machine's (repeatable)")
    add(parser, "--gpus", "N", "how many of that card", type=int)
    add(parser, "--parallel", "P", "only none, ddp, zero1, zero2, zero3 or fsdp")
    add(parser, "--lora-rank", "N", "rank of the adapters", type=int, default=8)
    add(parser, "--beside", "GIB", "what others hold of each card", type=float, default=0.0)
    add(parser, "--stack", "NAME=VERSION,…", "versions to write for")
    add(parser, "--target", "FILE", "facts, pins or a paste that tell versions and cards")
    add(parser, "--python", "PATH", "the interpreter whose versions count")
    add(parser, "--for", "FRAMEWORK", "whose files to write", dest="framework")
    add_flag(parser, "--validate", "run it for a few steps on this machine's GPU")


def run(args: argparse.Namespace) -> int:
    """Search, write, perhaps measure; 0 fits, 1 nothing does."""
    from envdoctor.matrix import load_matrix
    from envdoctor.profile.choosing import find_profile, write_profile
    from envdoctor.profile.emit import USUAL, check_framework

    framework = args.framework or USUAL[args.task]
    check_framework(framework, args.task)
    matrix = load_matrix()
    work = _workload(args, matrix)
    profile = write_profile(find_profile(work, matrix), framework, matrix)
    if args.validate and profile.found.choice is not None:
        from envdoctor.profile.validate import run_validation

        profile = run_validation(profile, framework, matrix, args.python or sys.executable)
    _write(args, profile)
    return profile.exit_code


def _write(args: argparse.Namespace, profile: Profile) -> None:
    from envdoctor.files import write_folder
    from envdoctor.profile.report import render

    if args.output and profile.files:
        folder = Path(args.output)
        write_folder(folder, profile.files)
        for name in profile.files:
            note(args, f"{folder / name} written")
    args.output = None
    write(args, render(profile, args.format, look_of(args)))


def _workload(args: argparse.Namespace, matrix: Matrix) -> Workload:
    from envdoctor.memory import find_shape
    from envdoctor.profile.workload import Workload

    facts = _facts(args, matrix)
    shape = find_shape(args.model)
    if not shape.known:
        raise Unavailable(f"--model {args.model}: model type {shape.model_type!r} is not known here")
    if args.seq is None:
        args.seq = min(2048, shape.learned_positions or 2048)
    stack = _stack(args, facts)
    return Workload(
        shape,
        _cards(args, matrix, facts),
        args.task,
        args.method,
        args.seq,
        args.global_batch,
        stack,
        args.model,
        int(args.beside * GIB),
        args.lora_rank,
        parallel=args.parallel,
        **_trainer(args, matrix, stack),
    )


def _trainer(args: argparse.Namespace, matrix: Matrix, stack: Stack) -> dict[str, Any]:
    """Whose step the profile is for: the framework's, where it is a trainer."""
    from envdoctor.memory.recipes import TRAINERS, recipe_of

    if args.task == "serve":
        return {}
    usual = "trl" if args.task == "grpo" else "transformers"
    trainer = args.framework if args.framework in TRAINERS else usual
    return {
        "trainer": trainer,
        "recipe": recipe_of(matrix.rows(tables.TrainerRow), trainer, args.task, stack.versions),
    }


def _facts(args: argparse.Namespace, matrix: Matrix) -> Facts | None:
    """This machine's facts, a file's, or none when the card is declared and nothing else is named."""
    if args.gpu and not args.python and not args.target:
        return None
    from envdoctor.diagnosis import read_facts

    if args.target:
        return read_facts([args.target], None, matrix)
    return read_facts([], args.python, matrix)


def _cards(args: argparse.Namespace, matrix: Matrix, facts: Facts | None) -> tuple[Card, ...]:
    from envdoctor.matrix.gpus import declared_gpu
    from envdoctor.memory.editions import with_memory
    from envdoctor.profile.workload import Card

    if args.gpus is not None and args.gpus < 1:
        raise InputError(f"--gpus: {args.gpus} is no count")
    if args.gpu:
        gpus = [
            with_memory(matrix, declared_gpu(matrix, name, index), name)[0]
            for index, name in enumerate(args.gpu)
        ]
    else:
        gpus = _seen(facts, matrix) if facts else []
    if not gpus:
        raise InputError("no GPU is seen on this machine; name one, such as --gpu 'RTX 4090'")
    for gpu in gpus:
        if not gpu.memory_total_bytes:
            raise InputError(f"--gpu {gpu.name}: its memory is not known; name a card, such as 'RTX 4090'")
    cards = tuple(Card(g.name or "GPU", g.memory_total_bytes or 0, g.compute_capability) for g in gpus)
    if args.gpus is None or args.gpus == len(cards):
        return cards
    if len(cards) == 1:
        return cards * int(args.gpus)
    if args.gpu or args.gpus > len(cards):
        raise InputError(f"--gpus {args.gpus}: {len(cards)} cards are named or seen")
    return cards[: args.gpus]


def _seen(facts: Facts, matrix: Matrix) -> list[Gpu]:
    """The GPUs that facts tell, completed by what the matrix knows of their models."""
    from envdoctor.rules.view import View

    return list(View(facts, matrix).gpus.get() or ())


def _stack(args: argparse.Namespace, facts: Facts | None) -> Stack:
    from envdoctor.profile.workload import Stack

    versions = {}
    complete = False
    if facts is not None:
        complete = facts.environment.complete
        versions = {n: d.version for n, d in facts.environment.distributions.items() if d.version}
    for item in filter(None, (args.stack or "").split(",")):
        name, equals, version = item.partition("=")
        if not equals or not version.strip("= "):
            raise InputError(f"--stack {item}: expected NAME=VERSION")
        versions[name.strip().lower().replace("_", "-")] = version.strip("= ")
    return Stack(versions, complete)
