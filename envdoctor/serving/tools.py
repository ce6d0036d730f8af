"""The tools: what each takes, as a JSON Schema, and which answer it gives. Nothing here knows the protocol.

No tool writes a file, starts a program that its caller names, or opens a file that its caller names but the
records of an environment. What leaves is redacted: an assistant's model may run elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from envdoctor import api
from envdoctor.errors import InputError, nearest
from envdoctor.memory.methods import METHODS
from envdoctor.memory.recipes import TASKS, TRAINERS
from envdoctor.memory.stated import StatedRun
from envdoctor.values import NamedTuple

Arguments = Mapping[str, Any]
Schema = dict[str, Any]

TEXT_LIMIT = 1 << 20
_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_NAMES = {"type": "array", "items": _NAME, "maxItems": 32}
_MODEL = {
    **_NAME,
    "pattern": r"^[A-Za-z0-9][\w.:+-]*(/[A-Za-z0-9][\w.:+-]*)?$",
    "description": "a catalogue name such as qwen2.5-7b, or a Hub id such as Qwen/Qwen2.5-7B",
}
_GPUS = {**_NAMES, "description": "cards by NVML's or the market's name, or sm_89; none: this machine's"}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 1 << 20}
_TARGET = {
    "gpus": _GPUS,
    "driver": {**_NAME, "description": "NVIDIA driver version"},
    "python_version": {**_NAME, "description": "such as 3.12"},
    "platform": {**_NAME, "description": "such as x86_64-manylinux_2_35"},
    "exclude_newer": {**_NAME, "description": "a day such as 2026-01-31: as if it were that day"},
}
_REQUESTS = {**_NAMES, "description": "requirements such as vllm or transformers>=5"}


class Settings(NamedTuple):
    """What the person who starts the server decides: the interpreter to examine, and the network."""

    python: str | None = None
    online: bool = False


class Tool(NamedTuple):
    """A tool: what it is for, what it takes, what its answer has, and the function that gives it."""

    title: str
    description: str
    takes: Schema
    gives: Schema
    answer: Callable[[Arguments, Settings], dict[str, Any]]


def _object(properties: Schema, required: tuple[str, ...] = (), open: bool = False) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": open,
    }


def _answer(**types: str) -> Schema:
    kinds: Schema = {name: {"type": kind.split("|")} for name, kind in types.items()}
    return _object({**kinds, "left_out": {"type": "object"}}, open=True)


def diagnose(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Diagnose a text, an environment or this machine; without the facts, and with its checks counted."""
    from envdoctor.bundling import redact_diagnosis
    from envdoctor.diagnosis import diagnose_facts
    from envdoctor.findings import Examined
    from envdoctor.matrix import load_matrix
    from envdoctor.target.cards import declare_gpus

    gpus = arguments.get("gpus", ())
    if "text" in arguments:
        matrix = load_matrix()
        facts = declare_gpus(api.parse(arguments["text"], arguments.get("file_name", "")), gpus, matrix)
        diagnosis = diagnose_facts(facts, matrix, examined=Examined("the text that was given"))
    else:
        from envdoctor.diagnosis import diagnose as diagnose_machine

        diagnosis = diagnose_machine(python=_environment(arguments) or settings.python, gpus=gpus)
    told = redact_diagnosis(diagnosis).to_json()
    counts = {"passed": 0, "failed": 0, "skipped": 0, "crashed": 0}
    for check in told["checks"]:
        counts[check["outcome"]] += 1
    return {**{key: value for key, value in told.items() if key not in ("facts", "schema")}, "checks": counts}


def _environment(arguments: Arguments) -> str | None:
    """Return the environment's folder; raises InputError for what its own files do not explain."""
    folder = arguments.get("environment")
    if folder is None:
        return None
    path = Path(folder).expanduser()
    try:
        told = (path / "pyvenv.cfg").is_file() or (path / "conda-meta").is_dir()
    except (OSError, ValueError):
        told = False
    if not told:
        raise InputError(f"environment: {folder}: no folder of a virtual or conda environment")
    return str(path)


def why_not(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return what forbids requirements, each cause with its source."""
    return api.why_not(arguments["requests"], **_target(arguments), offline=not settings.online).as_json()


def pin(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return versions that work together, each with its reasons."""
    pins = api.pin(
        arguments.get("requests", ()),
        **_target(arguments),
        least_change=arguments.get("least_change", False),
        offline=not settings.online,
    )
    return pins.as_json()


def _target(arguments: Arguments) -> dict[str, Any]:
    return {name: arguments[name] for name in _TARGET if name in arguments}


def memory(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return the predicted peak of one stated run."""
    run = {name: arguments[name] for name in _RUN if name in arguments}
    gpu, stack = arguments.get("gpu"), arguments.get("stack")
    prediction = api.predict(
        arguments["model"], StatedRun(**run), gpu=gpu, stack=stack, python=settings.python
    )
    return prediction.to_json(_size(gpu))


def _size(gpu: str | None) -> int | None:
    from envdoctor.matrix import load_matrix
    from envdoctor.target.cards import named_cards

    return named_cards([gpu], load_matrix())[0].memory_bytes if gpu else None


def profile(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return the fastest setting that fits, with its files; of what was rejected the first few."""
    chosen = {name: value for name, value in arguments.items() if name != "model"}
    told = api.choose_profile(arguments["model"], **chosen, python=settings.python).to_json()
    return {**told, "rejected": told["rejected"][:5]}


def explain(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return what is known of a check or finding, by its id; raises InputError with the nearest ids."""
    from envdoctor.matrix import load_matrix
    from envdoctor.rules.listing import explained_checks

    wanted = arguments["id"].strip().upper()
    checks = {check["id"]: check for check in explained_checks(load_matrix())}
    named = [name for name in checks if wanted == name or wanted.startswith(f"{name}-")]
    if not named:
        raise InputError(f"id: no check is {wanted}{nearest(wanted, checks)}")
    return checks[max(named, key=len)]


_WORDS: dict[str, Schema] = {
    "method": {"enum": [*METHODS]},
    "task": {"enum": [*TASKS, "serve"]},
    "trainer": {"enum": [*TRAINERS]},
    "parallel": {"enum": ["none", "ddp", "zero1", "zero2", "zero3", "fsdp"]},
}
_KINDS: dict[str, Schema] = {
    "bool": {"type": "boolean"},
    "int": _COUNT,
    "int | None": _COUNT,
    "float": {"type": "number", "minimum": 0, "maximum": 1},
    "float | None": {"type": "number", "minimum": 0, "maximum": 1},
}
_RUN: Schema = {
    field.name: _WORDS.get(field.name) or _KINDS.get(str(field.type), _NAME)
    for field in fields(StatedRun)
    if field.name != "deepspeed"
}
"""What states a run; a file is not named by an assistant."""

TOOLS: dict[str, Tool] = {
    "diagnose": Tool(
        "What is wrong with a GPU machine's LLM stack",
        "Say what is wrong and why, with evidence and remedies. Give `text` for what somebody pasted (an"
        " issue, a traceback, pip freeze, nvidia-smi, a training config); `environment` for the folder of a"
        " virtual or conda environment here; neither for this machine. Certainty says how sure a finding is;"
        " what a text does not tell is unknown, not fine.",
        _object(
            {
                "text": {"type": "string", "minLength": 1, "maxLength": TEXT_LIMIT},
                "file_name": {
                    **_NAME,
                    "description": "the name of the file that `text` is, such as train.yaml",
                },
                "environment": {"type": "string", "minLength": 1, "maxLength": 4096},
                "gpus": {**_NAMES, "description": "the cards to judge for, in place of those read"},
            }
        ),
        _answer(examined="object", findings="array", checks="object", exit_code="integer"),
        diagnose,
    ),
    "why_not": Tool(
        "What forbids a version",
        "Return the minimal reasons why requirements cannot be had on a card, driver and Python, with their"
        " sources.",
        _object({"requests": {**_REQUESTS, "minItems": 1}, **_TARGET}, ("requests",)),
        _answer(forbidden="boolean|null", causes="array"),
        why_not,
    ),
    "pin": Tool(
        "Versions that work together",
        "Solve for versions that work together on a card, a driver and a Python, each with its reason, or say"
        " why there are none. Without `requests`: what the examined environment has.",
        _object({"requests": _REQUESTS, **_TARGET, "least_change": {"type": "boolean"}}),
        _answer(status="string", pins="array", conflict="object"),
        pin,
    ),
    "memory": Tool(
        "Peak GPU memory of a run",
        "Predict the peak GPU memory of one training or serving run before it runs, and whether it fits a"
        " card.",
        _object({"model": _MODEL, "gpu": _NAME, "stack": _NAME, **_RUN}, ("model",)),
        _answer(device_bytes="integer", fits="boolean|null", components="array", phase="string"),
        memory,
    ),
    "profile": Tool(
        "The fastest setting that fits",
        "Choose the fastest memory-safe setting for cards and write it in a framework's format (`files`).",
        _object(
            {
                "model": _MODEL,
                "gpus": _GPUS,
                "count": {**_COUNT, "description": "how many of the card"},
                "method": {"enum": ["auto", "full", "lora", "qlora"]},
                "task": {"enum": ["sft", "dpo", "reward", "grpo", "serve"]},
                "framework": {
                    **_NAME,
                    "description": "whose files: transformers, trl, llamafactory, ms-swift, axolotl, vllm, …",
                },
                "seq": _COUNT,
                "global_batch": _COUNT,
                "parallel": _WORDS["parallel"],
                "lora_rank": _COUNT,
                "stack": {**_NAME, "description": "versions such as torch=2.9.1,transformers=5.1"},
            },
            ("model",),
        ),
        _answer(choice="object|null", files="object", memory="object|null"),
        profile,
    ),
    "explain": Tool(
        "What a finding means",
        "Explain a check or a finding by its id: what it means, when it holds, its remedies and its source.",
        _object({"id": _NAME}, ("id",)),
        _answer(id="string", title="string", source="string"),
        explain,
    ),
}
