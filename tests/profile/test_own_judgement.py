"""Whatever is written passes our own linter: no finding of it on the card it was chosen for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cards import written

from envdoctor.diagnosis import diagnose_facts, read_facts
from envdoctor.findings import Severity
from envdoctor.matrix import load_matrix
from envdoctor.target.cards import declare_gpus

FOUR = ("RTX 4090",) * 4
WORKLOADS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "qlora": ("qwen2.5-7b", ("RTX 4090",), {"method": "qlora"}),
    "lora-fp16": ("qwen2.5-1.5b", ("Tesla T4",), {"method": "lora"}),
    "full-zero2": ("qwen2.5-1.5b", FOUR, {"method": "full", "parallel": "zero2"}),
    "full-zero3": ("qwen2.5-7b", FOUR, {"method": "full", "parallel": "zero3"}),
    "full-fsdp": ("qwen2.5-1.5b", FOUR, {"method": "full", "parallel": "fsdp"}),
    "grpo": ("qwen2.5-1.5b", FOUR, {"method": "lora", "task": "grpo"}),
}
FRAMEWORKS = ("transformers", "trl", "llamafactory", "ms-swift", "axolotl", "accelerate", "deepspeed")
WRITES_NO_GRPO = ("transformers", "llamafactory")


def lint(files: dict[str, str], gpus: tuple[str, ...], folder: Path) -> list[str]:
    """Return the ids of the findings that are more than a note, of the files together."""
    for name, text in files.items():
        (folder / name).write_text(text)
    paths = [str(folder / name) for name in files if name == "env.sh" or not name.endswith(".sh")]
    matrix = load_matrix()
    facts = declare_gpus(read_facts(paths, None, matrix), gpus, matrix)
    diagnosis = diagnose_facts(facts, matrix)
    crashed = [check.rule for check in diagnosis.checks if check.outcome.value == "crashed"]
    heavy = [f"{f.id}: {f.summary}" for f in diagnosis.findings if f.severity is not Severity.NOTE]
    return crashed + heavy


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_is_found_in_what_we_write(framework: str, name: str, tmp_path: Path) -> None:
    model, gpus, others = WORKLOADS[name]
    if name == "grpo" and framework in WRITES_NO_GRPO:
        return
    if framework == "deepspeed" and "zero" not in name:
        return
    profile = written(framework, model, gpus, **others)
    assert profile.found.choice is not None
    assert lint(dict(profile.files), gpus, tmp_path) == []


def test_a_served_model_too(tmp_path: Path) -> None:
    profile = written("vllm", "qwen2.5-7b", ("RTX A6000",), task="serve", seq=4096)
    assert lint(dict(profile.files), ("RTX A6000",), tmp_path) == []
