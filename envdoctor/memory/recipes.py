"""What a trainer's release does in a step of a task, as rows state it: loss, reference model, upcasts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from packaging.version import InvalidVersion, Version

from envdoctor.errors import InputError
from envdoctor.matrix import tables
from envdoctor.memory.shape import ModelShape
from envdoctor.specifiers import SpecifierSet
from envdoctor.values import dataclass, replace

TRAINERS: Mapping[str, str] = {
    "transformers": "transformers",
    "trl": "trl",
    "llamafactory": "llamafactory",
    "ms-swift": "ms-swift",
    "axolotl": "axolotl",
}
"""Trainers that `--trainer` knows, and the distribution whose release decides what they do."""
TASKS = ("sft", "pretrain", "dpo", "kto", "orpo", "reward", "grpo", "ppo", "rloo", "distill")
BUILT_ON: Mapping[str, str] = {"axolotl": "trl", "ms-swift": "trl"}
"""Trainers that take another's for the tasks they have no rows of their own for."""
NEWEST = Version("9999")
"""Stands for a release that is not known: the rows of the newest one hold."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One trainer's step; the defaults are those of transformers' own Trainer.

    `loss` is "full" (the model's own, all logits), "logprobs" (of the labels, from all logits, one text
    at a time), "softmax" (the same through a log-softmax of all), "kernel" (the same in one kernel),
    "checkpointed" (chunks of `chunk_tokens`, recomputed), "tiled" (tiles of `chunk_tokens` ×
    `chunk_columns`, gradients in fp32), "divergence" (from a teacher's logits), "score" (a head of one
    output in the place of the vocabulary's) or "value" (one beside it: all logits are computed, and
    dropped before the loss). The `texts` of a sample go through the model at once, or `apart`: each with
    a graph of its own. `aside` counts copies of the policy's logits, answer by answer, that are made to
    log from before the reference is asked, and `aside_reference` those of its own. `held` and
    `held_reference` count fp32 copies of all logits that Python keeps beside the saved one until the
    loss is done; what is `logged` copies "logits" once more, or "entropy" beside that, or the chosen
    "answers", or the "desired" ones of a batch that mixes them, or of one in which all are "alike".
    `temperature` divides the logits, in place where `divides_view`. `nll` adds the cross entropy of the
    chosen texts. `reference` is "beside" where the reference model takes its turn while the policy's
    graph is alive, "before" where it was asked before; full training holds it as a second model
    (`reference_fp32`: loaded in fp32), adapters are switched off for it. What is `judged` has a reward
    model, and a value model that is trained whole beside the policy. `full_fp32` widens all that full
    training trains, `outer_fp32` the embedding, the head and norms. `padded` fills every batch up to a
    round length, beyond its longest row; `adapter_kernels` compute LoRA's layers, of adapters that are
    "plain" or such as drop of their input ("dropout"); `expandable_segments` is what the trainer sets
    for torch.
    """

    loss: str = "full"
    chunk_tokens: int = 0
    chunk_columns: int = 0
    head_fp32: bool = False
    scored: str = "all"
    texts: int = 1
    apart: bool = False
    reference: str = ""
    reference_fp32: bool = False
    judged: bool = False
    aside: int = 0
    aside_reference: int = 0
    held: int = 0
    held_reference: int = 0
    logged: str = ""
    nll: bool = False
    temperature: bool = False
    divides_view: bool = False
    generates: bool = False
    kbit_upcast: bool = True
    adapters_low: bool = False
    adapter_kernels: str = ""
    lora_dropout: float = 0.0
    full_fp32: bool = False
    outer_fp32: bool = False
    packed: bool = False
    padded: bool = False
    expandable_segments: bool = False
    grad_ckpt: bool = True
    frozen_tower: bool = False
    rows: tuple[str, ...] = ()


FIELDS = frozenset(item.name for item in fields(Recipe)) - {"rows"}
PLAIN = Recipe()


def recipe_of(
    rows: Iterable[tables.TrainerRow], trainer: str, task: str, stack: Mapping[str, str] | None = None
) -> Recipe:
    """Merge the `[[trainer]]` rows that hold for that trainer's release and task, later ones winning.

    A release that is not known counts as the newest. Raises InputError for a trainer or a task that is none.
    """
    if trainer not in TRAINERS:
        raise InputError(f"--trainer: {trainer!r} is none of {', '.join(TRAINERS)}")
    if task not in TASKS:
        raise InputError(f"--task: {task!r} is none of {', '.join((*TASKS, 'serve'))}")
    table, stack = [row for row in rows if task in row.tasks], stack or {}
    other = BUILT_ON.get(trainer, trainer)  # a row that names its release changes what is taken from there
    own = any(row.trainer == trainer and row.loss and other not in row.when for row in table)
    owners = {trainer} if own else {trainer, other}
    asked = [row.built_on for row in table if row.trainer == trainer and row.built_on and _holds(row, stack)]
    if asked and not stack.get(other):
        stack = {**stack, other: asked[-1]}
    holding = [row for row in table if row.trainer in owners and _holds(row, stack)]
    losses = [row for row in table if row.trainer in owners and row.loss]
    if losses and not any(row.loss for row in holding):
        told = " or ".join(f"{name}{bounds}" for row in losses for name, bounds in row.when.items())
        raise InputError(f"--task {task}: not in that release, but in {told} (--stack tells it)")
    if not holding:
        raise InputError(f"--task {task}: {trainer} is not known to have it; --trainer trl is")
    found: dict[str, Any] = {}
    for row in holding:
        found.update({key: told for key in FIELDS if (told := getattr(row, key)) is not None})
    return replace(PLAIN, **found, rows=tuple(row.id for row in holding))


def shaped(shape: ModelShape, recipe: Recipe) -> ModelShape:
    """Return the shape that a trainer builds where it scores texts: a head of one output, or an idle one."""
    if recipe.loss == "value":
        return replace(shape, idle_head=not shape.tied)
    return replace(shape, classes=1, tied=False) if recipe.loss == "score" else shape


def _holds(row: tables.TrainerRow, stack: Mapping[str, str]) -> bool:
    return all(
        SpecifierSet(wanted).contains(release_of(stack.get(name)), prereleases=True)
        for name, wanted in row.when.items()
    )


def release_of(version: str | None) -> Version:
    """Return a release as it is told; the newest one that is modelled where none is, or no version."""
    try:
        return Version(version) if version else NEWEST
    except InvalidVersion:
        return NEWEST
