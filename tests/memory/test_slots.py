"""Slots that vLLM sets aside for adapters: how large, by release, and what they leave for keys."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import ServingRun, find_shape, read_constants
from envdoctor.memory.constants import Constants
from envdoctor.memory.serving import describe_engine
from envdoctor.memory.slots import slot_bytes

GIB = 1 << 30


def of(release: str) -> Constants:
    return read_constants(load_matrix().rows(tables.MemoryRow), {"vllm": release})


def engine(model: str, slots: int = 1, rank: int = 16, tp: int = 1) -> ServingRun:
    return ServingRun(find_shape(model), 80 * GIB, 0.9, tp=tp, lora_slots=slots, lora_rank=rank)


def test_a_slot_holds_factors_for_every_linear_of_a_dense_model() -> None:
    hidden, wide, keys, count = 3584, 18944, 512, 28  # Qwen2.5-7B, whose tables take no adapters
    attention = (hidden + hidden) + 2 * (hidden + keys) + (hidden + hidden)
    ffn = 2 * (hidden + wide) + (wide + hidden)
    assert slot_bytes(engine("qwen2.5-7b", 4, 64), of("0.18.0")) == 4 * 64 * count * (attention + ffn) * 2


def test_cards_split_one_side_of_each_pair_of_factors() -> None:
    one, four = (slot_bytes(engine("qwen2.5-7b", tp=tp), of("0.18.0")) for tp in (1, 4))
    assert one / 4 < four < one / 1.5


def test_llamas_tables_take_adapters_and_older_releases_room_for_added_tokens() -> None:
    run = engine("llama-3.1-8b")
    new, old = slot_bytes(run, of("0.18.0")), slot_bytes(run, of("0.11.0"))
    assert old - new == 2 * (2 * 256 * (16 + 4096))
    plain = replace(run.shape, model_type="qwen2")
    assert new - slot_bytes(replace(run, shape=plain), of("0.18.0")) == 2 * 16 * 2 * (128256 + 4096)


def test_experts_have_slots_of_their_own_since_0_11_1() -> None:
    run = engine("qwen3-30b-a3b")
    old, new = slot_bytes(run, of("0.11.0")), slot_bytes(run, of("0.11.1"))
    hidden, width = run.shape.hidden, 768
    assert new - old == 2 * 16 * 48 * 128 * 3 * (hidden + width)


def test_slots_leave_less_for_keys() -> None:
    constants = of("0.18.0")
    run = engine("llama-3.1-8b", 8, 256)
    plain = describe_engine(replace(run, lora_slots=0), constants)
    assert plain.keys - describe_engine(run, constants).keys == slot_bytes(run, constants) > 5 * GIB


def test_an_engine_that_slots_push_over_the_edge_is_refused_by_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    length, slots = (
        ("--max-model-len", "16384"),
        ("--enable-lora", "--max-loras", "8", "--max-lora-rank", "256"),
    )
    for more, starts in (((), True), (slots, False)):
        asked = ("--model", "llama-3.1-8b", "--task", "serve", "--gpu", "RTX 3090", "--stack", "vllm=0.18.0")
        assert main(["memory", *asked, *length, *more]) == (0 if starts else 1)
        start = tmp_path / "serve.txt"
        line = " ".join(("vllm serve meta-llama/Llama-3.1-8B-Instruct", *length, *more))
        start.write_text(f"vllm==0.18.0\n\n{line}\n")
        capsys.readouterr()
        main(["diagnose", "--from", str(start), "--gpu", "RTX 3090", "--format", "json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        outcome = next(check["outcome"] for check in checks if check["rule"] == "VLLM-BUDGET")
        assert outcome == ("passed" if starts else "failed")


def test_a_number_of_adapters_wants_them_enabled(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--model", "llama-3.1-8b", "--task", "serve", "--gpu", "L40S", "--max-loras", "4")
    assert main(["memory", *asked]) == 2
    assert "--enable-lora" in capsys.readouterr().err
