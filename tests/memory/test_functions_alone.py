"""What each function of the room answers by itself: of drawn runs, shapes, settings, engines and configs.

A term that is wrong may be outweighed by a higher one in every run of a record. `functions_alone.tsv` keeps
the answers, a module a line; after a term was mended, `ENVDOCTOR_RECORD=1 pytest -n0
tests/memory/test_functions_alone.py` writes it anew.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from random import Random

from alone import Made, Pools, differing
from test_drawn_models import drawn_config
from test_exact_bytes import RUNS

from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import ServingRun, predict, read_constants
from envdoctor.memory.layout import Linear
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.settings import settings_of
from envdoctor.memory.tape import Tape, Tensor

RECORD = Path(__file__).with_name("functions_alone.tsv")
STACKS = ({}, {"torch": "2.4.0", "trl": "0.9.6"}, {"torch": "2.9.1", "vllm": "0.11.0", "sglang": "0.5.4"})
WORDS = (
    "bf16", "fp16", "fp32", "fp8", "fp8_e4m3", "nf4", "int8", "hqq", "none", "ddp", "zero1", "zero2", "zero3",
    "fsdp", "full", "lora", "qlora", "all", "attn", "qv", "q", "k", "v", "o", "up", "down", "gate", "head",
    "embed_tokens", "lm_head", "sdpa", "eager", "flash_attention_2", "adamw_torch", "adamw_8bit", "adafactor",
    "vllm", "sglang", "sft", "dpo", "grpo", "hidden_size", "num_hidden_layers", "vision_config", "", "q,k,o",
)  # fmt: skip
LINEARS = [
    Linear(role, inputs, outputs, bias, times)
    for role in ("q", "k", "v", "o", "gate", "up", "down", "router", "shared_up", "head")
    for inputs, outputs, bias, times in ((64, 96, False, 1), (4096, 1024, True, 1), (128, 512, False, 4))
]


def tensor(number: int) -> Tensor:
    return Tensor(1 + 977 * number * number, (2, 4, 1)[number % 3], needs=number % 4 != 0)


@cache
def pools() -> Pools:
    dice = Random(10)
    matrix = load_matrix()
    of_runs: list[TrainingRun] = [run for _, run in RUNS if isinstance(run, TrainingRun)][::4]
    served = [run for _, run in RUNS if isinstance(run, ServingRun)]
    shapes, settings = [run.shape for run in of_runs], [settings_of(run) for run in of_runs]
    constants = [read_constants(matrix.rows(tables.MemoryRow), stack, (9, 0)) for stack in STACKS]
    configs = [drawn_config(dice, number) for number in range(160)]
    seeing = [shape.vision for shape in shapes if shape.vision]
    numbers = [0, 1, 2, 3, 7, 8, 16, 100, 511, 512, 513, 1000, 4096]
    texts = [*WORDS, *(None,)]
    return {
        "TrainingRun": of_runs, "ServingRun": served, "ModelShape": shapes, "Settings": settings,
        "Constants": constants, "Recipe": [run.recipe for run in of_runs], "Vision": seeing,
        "ModelShape | Vision": [*shapes[:60], *seeing[:60]], "Any": [*configs[:30], *texts, *numbers],
        "Mapping[str, Any]": configs, "dict[str, Any]": [Made(partial(dict, one)) for one in configs],
        "str": WORDS, "str | None": texts, "int": numbers, "int | None": [*numbers, None],
        "bool": (True, False), "float": (0.0, 0.05, 0.5, 0.9, 1.0, 2.5),
        "tables.OptimizerRow": matrix.rows(tables.OptimizerRow),
        "Prediction": [predict(run, constants[0], close=False) for run in (*of_runs[:30], *served[:30])],
        "Tape": [Made(partial(Tape, keep=bool(n % 2), accumulating=n % 3 == 0)) for n in range(6)],
        "Tensor": [Made(partial(tensor, number)) for number in range(41)], "Linear": LINEARS,
        "tuple[Linear, ...]": [tuple(LINEARS[n : n + 3]) for n in range(len(LINEARS))],
    }  # fmt: skip


def test_each_function_answers_as_it_did() -> None:
    assert differing(RECORD, "envdoctor.memory", pools()) == []
