"""Runs stated as nobody would think of them together: what each one takes, to the byte, or why it is refused.

The questions are drawn by a seed from every setting of `StatedRun`; `drawn_questions.tsv` keeps what was
answered: the peaks, each phase and part, what was assumed. `python tests/memory/test_drawn_questions.py`
writes it anew after a term was mended, and its diff is read. Whether the bytes are right is for measured
runs to say.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envdoctor.errors import EnvdoctorError
from envdoctor.memory.answer import answer
from envdoctor.memory.stated import StatedRun, ask

RECORD = Path(__file__).parent / "drawn_questions.tsv"
MODELS = (
    "gpt2", "qwen2.5-0.5b", "qwen3-0.6b", "smollm2-135m", "gemma-3-1b", "qwen2.5-vl-3b", "t5-small",
    "llama-3.1-8b", "mixtral-8x7b",
)  # fmt: skip
STACKS = ("", "", "torch=2.9.1,transformers=4.57.1,trl=0.24.0", "torch=2.4.0,transformers=4.44.0,trl=0.9.6")
TRAINED = {
    "method": ("full", "lora", "lora", "qlora"),
    "task": ("sft", "sft", "dpo", "kto", "orpo", "reward", "grpo", "rloo", "ppo"),
    "trainer": (None, None, "trl", "transformers", "llamafactory", "axolotl", "ms-swift"),
    "packing": (True, False, False),
    "batch": (1, 2, 3, 8),
    "seq": (64, 777, 1024),
    "shortest_row": (None, None, 100),
    "grad_accum": (1, 3),
    "lora_rank": (1, 16, 200),
    "lora_targets": ("all", "attn", "qv"),
    "lora_dropout": (None, 0.0, 0.1),
    "dora": (True, False, False),
    "modules_to_save": ("", "", "embed_tokens", "lm_head"),
    "dtype": ("bf16", "bf16", "fp32"),
    "amp": ("bf16", "fp16", "none"),
    "optim": (
        "adamw_torch_fused", "adamw_torch", "adamw_8bit", "paged_adamw_8bit", "adafactor", "sgd", "muon",
        "galore_adamw", "lomo",
    ),
    "attn": ("sdpa", "eager", "flash_attention_2"),
    "liger": (True, False),
    "grad_ckpt": (True, False),
    "quant": (None, "nf4", "int8", "hqq"),
    "double_quant": (True, False),
    "upcast_kbit": (True, False),
    "gpus": (1, 1, 2, 4),
    "parallel": (None, None, "ddp", "zero1", "zero2", "zero3", "fsdp"),
    "offload_optimizer": (False, False, True),
    "offload_params": (False, False, False, True),
    "expandable_segments": (True, False),
    "max_completion": (None, None, 100),
    "num_generations": (None, None, 4),
    "offload_activations": (False, False, True),
    "images": (None, None, 2),
    "frozen_tower": (None, True, False),
}  # fmt: skip
SERVED = {
    "engine": (None, "vllm", "sglang"),
    "dtype": ("bf16", "fp32", "fp16"),
    "quant": (None, None, "nf4", "int8"),
    "kv_cache_dtype": ("auto", "fp8", "fp8_e4m3", "fp8_e5m2"),
    "gpus": (1, 1, 2),
    "tp": (1, 1, 2),
    "max_model_len": (None, 300, 777),
    "max_num_seqs": (None, 3, 256),
    "max_num_batched_tokens": (None, 1000, 8192),
    "vllm_utilization": (None, 0.2, 0.95),
    "mem_fraction_static": (None, 0.3, 0.88),
    "cuda_graph_max_bs": (None, 8, 160),
    "enable_lora": (False, False, True),
    "max_loras": (None, 3),
    "max_lora_rank": (None, 64),
    "enforce_eager": (True, False),
}
GPUS = (None, "T4", "RTX 4090", "A100 80GB", "H100")


NEEDS = {
    "method": ("lora_rank", "lora_targets", "lora_dropout", "dora", "modules_to_save"),
    "qlora": ("quant", "double_quant", "upcast_kbit"),
    "offloads": ("offload_optimizer", "offload_params"),
    "sglang": ("mem_fraction_static", "cuda_graph_max_bs"),
    "vllm": ("vllm_utilization", "enable_lora"),
    "adapters": ("max_loras", "max_lora_rank"),
    "images": ("images", "frozen_tower"),
    "groups": ("num_generations", "max_completion"),
}


def _fitting(stated: dict[str, Any], model: str) -> dict[str, Any]:
    """Leave out what asks for a setting that is not stated: nearly all of such a draw would be refused."""
    method, engine = stated.get("method", "full"), stated.get("engine")
    met = {
        "method": method != "full",
        "qlora": method == "qlora",
        "offloads": stated.get("gpus", 1) > 1 and str(stated.get("parallel")) in ("zero1", "zero2", "zero3"),
        "sglang": engine == "sglang",
        "vllm": engine != "sglang",
        "adapters": stated.get("enable_lora") and engine != "sglang",
        "images": "-vl-" in model,
        "groups": stated.get("task") in ("grpo", "rloo"),
    }
    left = {name for need, names in NEEDS.items() if not met[need] for name in names}
    return {name: value for name, value in stated.items() if name not in left}


def drawn() -> Iterator[tuple[str, str, StatedRun, str | None, str]]:
    """Yield a name, a model, what is stated of its run, a card and a stack."""
    for number in range(400):
        draws = random.Random(number)
        serves = number % 6 == 0
        table = SERVED if serves else TRAINED
        names = draws.sample(sorted(table), draws.randint(5, 14))
        model, gpu, stack = draws.choice(MODELS), draws.choice(GPUS), draws.choice(STACKS)
        stated = _fitting({name: draws.choice(table[name]) for name in names}, model)
        if serves:
            stated, gpu = {**stated, "task": "serve"}, gpu or "H100"
            stated["tp"] = stated.get("gpus", 1)
        else:
            stated.setdefault("seq", 512)
        told = " ".join(f"{name}={value}" for name, value in stated.items())
        yield f"{number} {model} on {gpu}: {told} {stack}".rstrip(), model, StatedRun(**stated), gpu, stack


def told(number: int, model: str, run: StatedRun, gpu: str | None, stack: str) -> str:
    """Return the bytes and the words of an answer, or the refusal; each fourth is replayed."""
    try:
        asked = replace(ask(model, run, gpu=gpu, stack=stack), close=number % 4 == 0)
        said = answer(asked).to_json(asked.gpu_bytes)
    except EnvdoctorError as error:
        return f"{type(error).__name__}: {error}"
    parts = (f"{part['name']} {part['bytes']}" for part in (*said["components"], *said["outside"]))
    sums = (
        f"{said['peak_allocated_bytes']} {said['peak_reserved_bytes']} {said['device_bytes']} {said['fits']}"
    )
    rest = [str(said["phases"]), "; ".join(parts), "; ".join(said["assumptions"]), str(said["uncertain"])]
    return " | ".join([sums, *rest])


def lines() -> list[str]:
    """Return the record as it would be written today."""
    return [f"{name}\t{told(n, *asked)}" for n, (name, *asked) in enumerate(drawn())]


RECORDED = (
    dict(line.split("\t") for line in RECORD.read_text("utf-8").splitlines()) if RECORD.exists() else {}
)


@pytest.mark.parametrize("part", range(8))
def test_what_is_stated_together_takes_what_it_took(part: int) -> None:
    for n, (name, *asked) in enumerate(drawn()):
        if n % 8 == part:
            assert told(n, *asked) == RECORDED[name], name


if __name__ == "__main__":
    RECORD.write_text("\n".join(lines()) + "\n", encoding="utf-8")
