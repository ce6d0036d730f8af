"""A chosen setting in a framework's own format: one module a framework, each `emit(plan) -> files`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from envdoctor.errors import InputError, nearest
from envdoctor.profile.emit.plan import Plan
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Writer:
    """A framework's emitter: its module here and the tasks it can write."""

    module: str
    tasks: tuple[str, ...]


PAIRS = ("dpo", "reward")
"""Tasks whose samples are a chosen and a rejected answer."""
TRAINED = ("sft", *PAIRS, "grpo")

WRITERS: Mapping[str, Writer] = {
    "transformers": Writer("transformers", ("sft",)),
    "trl": Writer("trl", TRAINED),
    "llamafactory": Writer("llamafactory", ("sft", *PAIRS)),
    "ms-swift": Writer("ms_swift", TRAINED),
    "axolotl": Writer("axolotl", ("sft", "dpo", "grpo")),
    "accelerate": Writer("accelerate", TRAINED),
    "deepspeed": Writer("deepspeed", TRAINED),
    "vllm": Writer("vllm", ("serve", "grpo")),
    "env": Writer("env", (*TRAINED, "serve")),
}
USUAL = {"sft": "transformers", "dpo": "trl", "reward": "trl", "grpo": "trl", "serve": "vllm"}


def usual_task(framework: str | None) -> str:
    """Return what a framework is for first; sft where none is told."""
    writer = WRITERS.get(framework or "")
    return writer.tasks[0] if writer else "sft"


def check_framework(framework: str, task: str) -> None:
    """Raise InputError when the framework cannot be written for the task."""
    writer = WRITERS.get(framework)
    if writer is None:
        near = nearest(framework, WRITERS) or f"; there are {', '.join(WRITERS)}"
        raise InputError(f"--for {framework}: not known{near}")
    if task not in writer.tasks:
        raise InputError(f"--for {framework}: it has no {task}; it writes {', '.join(writer.tasks)}")


def emit(framework: str, plan: Plan) -> dict[str, str]:
    """Return the framework's files by name, and the environment variables that go with them.

    Raises InputError when the framework has no such task or cannot express the setting.
    """
    check_framework(framework, plan.choice.task)
    module = importlib.import_module(f"{__name__}.{WRITERS[framework].module}")
    files: dict[str, str] = module.emit(plan)
    if framework != "env":
        from envdoctor.profile.emit import env

        files = {**files, **env.emit(plan, framework)}
    return files
