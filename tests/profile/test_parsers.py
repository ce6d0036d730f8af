"""What is written is accepted by each project's own parser, in the interpreters of ENVDOCTOR_PARSERS_PYTHON.

The variable names one interpreter, or several apart by `:`; each framework is tried in the first that has it.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cards import written

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("accept.py")
STUB = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
FOUR = ("RTX 4090",) * 4
WORKLOADS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "qlora": ("qwen2.5-7b", ("RTX 4090",), {"method": "qlora"}),
    "lora": ("qwen2.5-1.5b", ("RTX 4090",), {"method": "lora"}),
    "full-zero2": ("qwen2.5-1.5b", FOUR, {"method": "full", "parallel": "zero2"}),
    "full-zero3": ("qwen2.5-7b", FOUR, {"method": "full", "parallel": "zero3"}),
    "full-fsdp": ("qwen2.5-1.5b", FOUR, {"method": "full", "parallel": "fsdp"}),
    "qlora-zero3": ("qwen2.5-7b", FOUR, {"method": "qlora", "parallel": "zero3"}),
    "grpo": ("qwen2.5-1.5b", FOUR, {"method": "lora", "task": "grpo"}),
    "grpo-zero3": ("qwen2-7b", FOUR, {"method": "lora", "task": "grpo", "parallel": "zero3"}),
}
CASES = (
    *(("transformers", name) for name in WORKLOADS if not name.startswith("grpo")),
    *(("trl", name) for name in WORKLOADS),
    *(("accelerate", name) for name in WORKLOADS),
    *(("deepspeed", name) for name in ("full-zero2", "full-zero3", "qlora-zero3", "grpo-zero3")),
    *(("llamafactory", name) for name in ("qlora", "lora", "full-zero2", "full-zero3", "full-fsdp")),
    *(("ms-swift", name) for name in WORKLOADS),
    *(("axolotl", name) for name in WORKLOADS if name != "grpo-zero3"),
)


@cache
def interpreter_with(framework: str) -> tuple[str, dict[str, str]] | None:
    """Return an interpreter that can import the framework, and its versions."""
    for python in filter(None, os.environ.get("ENVDOCTOR_PARSERS_PYTHON", "").split(":")):
        done = subprocess.run([python, SCRIPT, "has", framework], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return python, json.loads(done.stdout.strip().splitlines()[-1])
    return None


def answers_of(framework: str, folder: Path) -> dict[str, str]:
    """Return why the framework's parser refuses each workload's files ("": it accepts them)."""
    if (known := interpreter_with(framework)) is None:
        pytest.skip(f"no interpreter with {framework} (set ENVDOCTOR_PARSERS_PYTHON)")
    python, versions = known
    stub = folder / "stub"
    stub.mkdir()
    (stub / "config.json").write_text(json.dumps(STUB))
    names = [name for one, name in CASES if one == framework]
    for name in names:
        model, gpus, others = WORKLOADS[name]
        profile = written(framework, model, gpus, stack=versions, **others)
        (folder / name).mkdir()
        for file, text in profile.files.items():
            (folder / name / file).write_text(text)
    command = [python, SCRIPT, framework, stub, *(folder / name for name in names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-1500:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return {Path(path).name: why for path, why in told.items()}


@pytest.mark.parametrize("framework", sorted({framework for framework, _ in CASES}))
def test_the_real_parser_accepts(framework: str, tmp_path: Path) -> None:
    answers = answers_of(framework, tmp_path)
    assert answers
    assert {name: why for name, why in answers.items() if why} == {}
