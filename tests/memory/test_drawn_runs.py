"""Runs drawn over all that can be stated of one, each answered as `drawn_runs.tsv` has it.

What nobody thought of asking together is asked here, every second time by a replay of the allocator.
`python tests/memory/test_drawn_runs.py` writes the record anew, and its diff says which answers changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envdoctor.errors import EnvdoctorError
from envdoctor.memory.answer import answer
from envdoctor.memory.stated import StatedRun, ask

RECORD = Path(__file__).with_name("drawn_runs.tsv")
COUNT = 240
MODELS = (
    "qwen2.5-0.5b",
    "qwen2.5-0.5b",
    "qwen2.5-7b",
    "llama-3.1-8b",
    "gemma-2-2b",
    "gemma-3-4b",
    "mixtral-8x7b",
    "gpt2",
)
CARDS = ("RTX 3090", "RTX 4090", "A100 80GB", "T4", "H100", "L4")
STACKS = ("", "torch=2.9.1,transformers=4.57.1,trl=0.24.0", "torch=2.4.0,transformers=4.44.0,trl=0.9.6")
TRAINED: dict[str, tuple[Any, ...]] = {
    "method": ("full", "lora", "lora", "qlora"),
    "task": ("sft", "sft", "sft", "dpo", "kto", "orpo", "reward", "grpo", "grpo", "distill"),
    "teacher": ("qwen2.5-0.5b",),
    "batch": (1, 2, 3),
    "seq": (512, 1000, 2048),
    "shortest_row": (None, None, 200),
    "grad_accum": (1, 3),
    "gpus": (1, 1, 2, 4),
    "parallel": (None, None, "ddp", "fsdp", "zero1", "zero2", "zero3"),
    "dtype": ("bf16", "bf16", "fp32"),
    "amp": ("bf16", "bf16", "fp16", "none", "fp8"),
    "optim": (
        "adamw_torch_fused",
        "adamw_torch",
        "adamw_8bit",
        "adafactor",
        "sgd",
        "lion_32bit",
        "galore_adamw",
    ),
    "attn": ("sdpa", "eager", "flash_attention_2"),
    "liger": (False, True),
    "lora_targets": ("all", "attn", "qv"),
    "lora_dropout": (None, 0.0, 0.1),
    "dora": (False, False, True),
    "modules_to_save": ("", "", "embed_tokens", "lm_head", "embed_tokens,lm_head"),
    "quant": (None, "nf4", "int8", "hqq"),
    "grad_ckpt": (True, False),
    "expandable_segments": (False, True),
    "offload_optimizer": (False, False, True),
    "vllm_utilization": (None, 0.0, 0.2),
}
SERVED: dict[str, tuple[Any, ...]] = {
    "task": ("serve",),
    "engine": (None, None, "sglang"),
    "tp": (1, 2, 4),
    "pp": (1, 1, 2),
    "max_model_len": (None, 4096, 20000),
    "max_num_seqs": (None, 16),
    "max_num_batched_tokens": (None, 4096),
    "kv_cache_dtype": ("auto", "fp8", "fp8_e5m2"),
    "dtype": ("bf16", "fp16"),
    "enforce_eager": (False, True),
    "enable_lora": (False, False, True),
    "max_loras": (None, 3),
}


_ADAPTERS = ("lora_targets", "lora_dropout", "modules_to_save", "dora")
NEEDED: dict[str, Callable[[dict[str, Any]], bool]] = {
    **dict.fromkeys(_ADAPTERS, lambda kept: kept.get("method") in ("lora", "qlora")),
    "quant": lambda kept: kept.get("method") == "qlora",
    "vllm_utilization": lambda kept: kept.get("task") == "grpo",
    "teacher": lambda kept: kept.get("task") == "distill",
    "parallel": lambda kept: kept.get("gpus", 1) > 1,
    "offload_optimizer": lambda kept: str(kept.get("parallel")) in ("zero1", "zero2", "zero3", "fsdp"),
    "max_loras": lambda kept: kept.get("enable_lora", False),
}
"""What may be stated beside what else alone; the rest of the refusals has examples of its own."""


def drawn(number: int) -> tuple[str, str | None, str, dict[str, Any]]:
    """A model, a card, a stack and what is stated of a run: some of it, the rest as it is by itself."""
    random_ = random.Random(f"runs {number}")
    told = SERVED if number % 4 == 0 else TRAINED
    stated = {name: random_.choice(values) for name, values in told.items()}
    kept = {name: value for name, value in stated.items() if name == "task" or random_.random() < 0.5}
    for name, needs in NEEDED.items():
        if name in kept and not needs(kept):
            del kept[name]
    if kept.get("engine") == "sglang":
        kept["cuda_graph_max_bs"] = kept.pop("max_num_seqs", None)
    return random_.choice(MODELS), random_.choice(CARDS), random_.choice(STACKS), kept


def told(number: int) -> str:
    """What is asked, then what a card holds of it by its parts and phases, or why that is refused."""
    model, card, stack, stated = drawn(number)
    words = [f"{name}={value}" for name, value in stated.items()]
    asked = " ".join([model, f"gpu={card}", f"stack={stack}", *words])
    try:
        question = replace(ask(model, StatedRun(**stated), gpu=card, stack=stack), close=number % 2 == 1)
        said = answer(question).to_json(question.gpu_bytes)
    except EnvdoctorError as error:
        return f"{asked}\t{type(error).__name__}: {error}"
    parts = " ".join(f"{one['name']}: {one['bytes']}," for one in said.pop("components"))
    rest = {
        name: value for name, value in said.items() if name != "schema" and value not in (None, [], {}, "")
    }
    return f"{asked}\t{parts} {rest}"


@pytest.mark.parametrize(("number", "line"), [*enumerate(RECORD.read_text(encoding="utf-8").splitlines())])
def test_a_drawn_run_is_answered_as_it_was(number: int, line: str) -> None:
    assert told(number) == line


if __name__ == "__main__":
    RECORD.write_text("".join(f"{told(number)}\n" for number in range(COUNT)), encoding="utf-8")
