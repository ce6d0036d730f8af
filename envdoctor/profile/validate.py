"""Running a chosen setting on the real card for a few steps, with random weights of the model's shape."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.matrix import Matrix, tables
from envdoctor.memory import predict
from envdoctor.memory.catalogue import find_config
from envdoctor.memory.recipes import TRAINERS, recipe_of
from envdoctor.processes import Completed, run_child
from envdoctor.profile.choosing import Profile, constants_of, speed_of, write_profile
from envdoctor.profile.emit import axolotl, llamafactory, ms_swift, trl
from envdoctor.profile.emit.deepspeed import config as deepspeed_config
from envdoctor.profile.emit.env import variables
from envdoctor.profile.emit.plan import Plan
from envdoctor.profile.emit.transformers import training_arguments
from envdoctor.profile.keys import Names
from envdoctor.profile.needs import run_of
from envdoctor.profile.search import Found, step_down
from envdoctor.profile.workload import Choice, Workload
from envdoctor.values import replace

STEPS = 3
ACCUMULATED = 2
"""Micro steps of a trial's step: from the second on nothing new is allocated."""
TIMEOUT_S = 300.0
TRIES = 4
BUILT_HERE = ("transformers", "trl")
"""Trainers that step what the trial builds, in its own process, where it is supervised fine-tuning."""


OWN: Mapping[str, Callable[[Plan], dict[str, Any]]] = {
    "trl": trl.arguments,
    "llamafactory": llamafactory.arguments,
    "ms-swift": ms_swift.arguments,
    "axolotl": axolotl.arguments,
}
"""What each framework's file says."""


def run_validation(profile: Profile, framework: str, matrix: Matrix, python: str) -> Profile:
    """Run the profile, step down on an out-of-memory, and return it with what was measured.

    Raises Unavailable when the trial cannot be run here (no GPU, no torch, another failure).
    """
    notes: list[str] = []
    found = profile.found
    for _ in range(TRIES):
        if found.choice is None or found.need is None:
            break
        if reason := _not_tried(found, matrix):
            return replace(profile, validated={"status": "predicted", "notes": [reason]})
        outcome = run_trial(found, matrix, python)
        if not outcome["oom"]:
            profile = write_profile(found, framework, matrix)
            return replace(profile, validated=_measured(found, outcome, notes))
        notes.append(f"ran out of memory with {_name(found)}; stepped down")
        work, below = found.work, int(found.need.device_bytes)
        found = step_down(work, constants_of(work, matrix), speed_of(work, matrix), below)
    empty = replace(found, choice=None, need=None)
    return Profile(empty, {}, {"status": "measured", "oom": True, "notes": [*notes, "nothing ran"]})


def _not_tried(found: Found, matrix: Matrix) -> str:
    choice, work = found.choice, found.work
    if choice is None or found.need is None or choice.task == "serve" or choice.vllm_mode:
        return "only training runs are tried; the engine's share is predicted"
    if choice.parallel == "fsdp":
        return "FSDP is not tried here; its peak is predicted"
    if _built_here(work) or _by_its_entry(work, choice):
        return ""
    if choice.task != "sft":
        return f"{work.trainer} is not tried on {choice.gpus} cards or where it is not installed"
    plain = recipe_of(matrix.rows(tables.TrainerRow), "transformers", "sft", work.stack.versions)
    run = run_of(replace(work, trainer="transformers", recipe=plain), choice)
    tried = predict(run, constants_of(work, matrix), close=False)
    if tried.peak_allocated_bytes == found.need.prediction.peak_allocated_bytes:
        return ""
    return (
        f"a trial is of transformers' Trainer; {work.trainer}'s own takes another way, its peak is predicted"
    )


def _built_here(work: Workload) -> bool:
    return work.trainer in BUILT_HERE and work.task == "sft"


def _by_its_entry(work: Workload, choice: Choice) -> bool:
    """True where the trainer is begun by its own entry: on one card, where it is there."""
    return choice.gpus == 1 and not choice.deepspeed and work.stack.has(TRAINERS[work.trainer])


def _name(found: Found) -> str:
    choice = found.choice
    assert choice is not None
    return f"{choice.method}, {choice.parallel}, batch {choice.batch}, checkpointing {choice.grad_ckpt}"


def _measured(found: Found, outcome: Mapping[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    assert found.need is not None
    prediction = found.need.prediction
    return {
        "status": "measured",
        "steps": STEPS,
        "measured_allocated_bytes": outcome["allocated_bytes"],
        "measured_reserved_bytes": outcome["reserved_bytes"],
        "measured_context_bytes": outcome["context_bytes"],
        "predicted_allocated_bytes": prediction.peak_allocated_bytes,
        "predicted_reserved_bytes": prediction.peak_reserved_bytes,
        "versions": outcome["versions"],
        "notes": list(notes),
    }


def run_trial(found: Found, matrix: Matrix, python: str) -> dict[str, Any]:
    """Run the setting in `python` and return the highest figures of its ranks; raises Unavailable."""
    choice = found.choice
    assert choice is not None
    request = trial_request(found, matrix)
    command = [str(Path(__file__).with_name("trial.py")), json.dumps(request)]
    argv = [python, *command]
    if choice.gpus > 1 or choice.deepspeed:
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={choice.gpus}"]
        argv = [python, *launch, *command]
    environment = {**os.environ, **_environment(found, matrix), "HF_HUB_OFFLINE": "1"}
    done = run_child(argv, timeout_s=TIMEOUT_S, env=environment)
    return highest(parse_trial(done.stdout), done)


def _environment(found: Found, matrix: Matrix) -> dict[str, str]:
    return variables(plan_of(found, matrix), found.work.trainer)


def plan_of(found: Found, matrix: Matrix) -> Plan:
    """Return what is written of a search's answer."""
    assert found.choice is not None
    return Plan(found.choice, found.work, Names(matrix, found.work.stack))


def trial_request(found: Found, matrix: Matrix) -> dict[str, Any]:
    """Return what the trial is told: the model's sizes, the setting and the trainer's arguments."""
    choice = found.choice
    assert choice is not None
    whole = choice.task == "grpo"  # all texts of a step are written at once
    short = choice if whole else replace(choice, grad_accum=min(choice.grad_accum, ACCUMULATED))
    plan = plan_of(replace(found, choice=short), matrix)
    work, entry = found.work, not _built_here(found.work) and _by_its_entry(found.work, short)
    arguments = OWN[work.trainer](plan) if entry else training_arguments(plan)
    if short.deepspeed:
        arguments["deepspeed"] = deepspeed_config(plan)
    return {
        "entry": entry,
        "budget_bytes": work.room - constants_of(work, matrix).cuda_context,
        "config": sizes_of(found.work),
        "setting": short.to_json(),
        "shortest_row": found.work.shortest_row,
        "arguments": arguments,
        "trainer": found.work.trainer,
        "steps": STEPS,
    }


def sizes_of(work: Workload) -> dict[str, Any]:
    """Return the model's config.json without what says where its weights are and how they are stored."""
    config = find_config(work.model)
    nested = config.get("text_config")
    if isinstance(nested, Mapping) and "hidden_size" not in config:
        config = nested
    left_out = ("architectures", "auto_map", "quantization_config", "torch_dtype", "dtype")
    told = {k: v for k, v in config.items() if k not in left_out and not k.startswith("_")}
    return told if work.shape.window else {**told, "sliding_window": None}  # some types have one unless told


def parse_trial(text: str) -> list[dict[str, Any]]:
    """Return the figures of each rank in a trial's output."""
    found = []
    for line in text.splitlines():
        _, marker, rest = line.partition("TRIAL ")
        if marker:
            data, _ = json.JSONDecoder().raw_decode(rest)
            found.append(data)
    return found


def highest(ranks: Sequence[Mapping[str, Any]], done: Completed) -> dict[str, Any]:
    """Return the highest figures over the ranks; raises Unavailable when none answered."""
    if not ranks:
        if done.timed_out:
            raise Unavailable(f"--validate: no answer within {TIMEOUT_S:.0f} s")
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise Unavailable(f"--validate: the trial failed: {last[0][:200]}")
    figures = {
        key: max(rank[key] for rank in ranks)
        for key in ("allocated_bytes", "reserved_bytes", "context_bytes", "total_bytes")
    }
    return {**figures, "oom": any(rank["oom"] for rank in ranks), "versions": ranks[0]["versions"]}
