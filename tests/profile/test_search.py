"""What is chosen, what is rejected, and that the order is by the modelled speed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cards import GIB, found, workload

from envdoctor.errors import InputError
from envdoctor.facts import ComputeCapability
from envdoctor.matrix import load_matrix, tables
from envdoctor.profile.choosing import constants_of, find_profile, speed_of
from envdoctor.profile.needs import Judge
from envdoctor.profile.search import step_down
from envdoctor.profile.speed import card_speed, seconds_per_sample
from envdoctor.profile.workload import Choice, Workload
from envdoctor.target.cards import Card

FOUR = ("RTX 4090",) * 4


@pytest.mark.parametrize("model", ["qwen2.5-0.5b", "llama-3.2-3b", "mistral-7b", "gemma-2-9b"])
@pytest.mark.parametrize("gpus", [("RTX 4090",), ("A100 80GB",), FOUR], ids=lambda g: f"{len(g)}x{g[0]}")
def test_the_choice_fits_and_reaches_the_wanted_global_batch(model: str, gpus: tuple[str, ...]) -> None:
    answer = found(model, gpus, global_batch=32)
    assert answer.choice is not None
    assert answer.need is not None
    assert answer.need.device_bytes <= answer.work.room
    assert answer.choice.global_batch == 32


def test_nothing_that_fits_is_faster_than_the_choice() -> None:
    from envdoctor.profile.options import training_choices

    work = workload("qwen2.5-7b", ("RTX 4090",) * 2)
    answer = find_profile(work, load_matrix())
    assert answer.choice is not None
    speed, judge = speed_of(work, load_matrix()), Judge(work, constants_of(work, load_matrix()))
    fitting = [
        seconds_per_sample(work.shape, choice, speed)
        for choice in training_choices(work)
        if not choice.offload_optimizer and judge.need(choice).device_bytes <= work.room
    ]
    assert seconds_per_sample(work.shape, answer.choice, speed) == min(fitting)


def test_rejected_settings_say_what_they_need_and_how_much_faster_they_would_be() -> None:
    rejected = [r.to_json() for r in found("qwen2.5-7b", ("RTX 4090",), method="lora").rejected]
    assert "GiB of 23.6" in rejected[0]["why"]
    assert rejected[0]["relative_speed"] > 1
    speeds = [r["relative_speed"] for r in rejected if "relative_speed" in r]
    assert speeds == sorted(speeds, reverse=True)


def test_room_left_over_is_explained() -> None:
    answer = found("qwen2.5-0.5b", ("A100 80GB",), method="lora", global_batch=1)
    assert any("already holds the global batch of 1" in note for note in answer.notes)


def test_when_nothing_fits_a_length_that_would_is_named() -> None:
    answer = found("qwen2.5-7b", ("RTX 4090",), method="qlora", seq=32768)
    assert answer.choice is None
    assert answer.rejected
    assert "tokens would" in answer.notes[0]
    assert found("llama-3.1-70b", ("RTX 3060",), method="lora", parallel="none").choice is None


def test_cards_without_bf16_get_fp16() -> None:
    answer = found("qwen2.5-1.5b", ("Tesla T4",), method="lora")
    assert answer.choice is not None
    assert (answer.choice.dtype, answer.choice.amp) == ("fp16", "fp16")
    assert any(r.to_json()["choice"] == {"dtype": "bf16"} for r in answer.rejected)


def test_flash_attention_and_liger_only_where_they_are_installed() -> None:
    plain = found("qwen2.5-1.5b", ("RTX 4090",)).choice
    stack = {"flash-attn": "2.8.3", "liger-kernel": "0.8.5", "bitsandbytes": "0.50.2"}
    rich = found("qwen2.5-1.5b", ("RTX 4090",), stack=stack).choice
    old = found("qwen2.5-1.5b", ("Tesla T4",), stack=stack).choice
    assert plain
    assert rich
    assert old
    assert (plain.attn, plain.liger) == ("sdpa", False)
    assert (rich.attn, rich.liger) == ("flash_attention_2", True)
    assert old.attn == "sdpa"


def test_what_is_not_installed_is_not_chosen() -> None:
    stack = {"torch": "2.13.0", "transformers": "5.17.0"}
    answer = found("qwen2.5-7b", ("RTX 4090",), stack=stack, complete=True)
    assert answer.choice is None or answer.choice.method != "qlora"
    assert any(r.to_json()["why"] == "bitsandbytes is not installed" for r in answer.rejected)


def test_memory_that_others_hold_is_left_to_them() -> None:
    alone = found("qwen2.5-7b", ("A100 80GB",), method="lora")
    beside = found("qwen2.5-7b", ("A100 80GB",), method="lora", beside_bytes=50 * GIB)
    assert alone.need
    assert beside.need
    assert beside.need.device_bytes <= 30 * GIB < alone.need.device_bytes


def test_grpo_beside_vllm_leaves_the_engine_what_it_needs() -> None:
    answer = found("qwen2.5-1.5b", FOUR, task="grpo", method="lora")
    choice = answer.choice
    assert choice is not None
    assert choice.vllm_utilization is not None
    assert choice.vllm_mode in ("colocate", "server")
    assert choice.global_batch % (choice.num_generations or 1) == 0


def test_a_smaller_setting_is_found_after_an_out_of_memory() -> None:
    work = workload("qwen2.5-7b", ("RTX 4090",), method="qlora")
    matrix = load_matrix()
    first = find_profile(work, matrix)
    assert first.need is not None
    second = step_down(work, constants_of(work, matrix), speed_of(work, matrix), first.need.device_bytes)
    assert second.need is not None
    assert second.need.device_bytes < first.need.device_bytes


def test_the_model_of_speed_keeps_to_what_is_known() -> None:
    work = workload("qwen2.5-7b", FOUR)
    speed = speed_of(work, load_matrix())

    def cost(**changes: object) -> float:
        base = Choice("sft", "lora", "ddp", gpus=4, batch=2, grad_accum=2)
        return seconds_per_sample(work.shape, replace(base, **changes), speed)  # type: ignore[arg-type]

    assert cost(grad_ckpt=False) < cost()
    assert cost(method="qlora") > cost()
    assert cost(parallel="zero3") > cost(parallel="zero2") > cost()
    assert cost(attn="eager") > cost()
    assert cost(batch=4, grad_accum=1) < cost() < cost(batch=1, grad_accum=4)
    assert cost(offload_params=True, parallel="zero3") > cost(parallel="zero3")


def test_an_unknown_card_has_a_speed_too() -> None:
    rows = load_matrix().rows(tables.SpeedRow)
    assert card_speed(rows, None).flops > 0
    assert card_speed(rows, ComputeCapability(9, 0)).flops > card_speed(rows, ComputeCapability(7, 5)).flops


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seq": 0}, "--seq"),
        ({"global_batch": 0}, "--global-batch"),
        ({"lora_rank": 0}, "--lora-rank"),
        ({"cards": ()}, "--gpu"),
        ({"beside_bytes": -1}, "--beside"),
        ({"parallel": "zero9"}, "--parallel"),
        ({"task": "grpo", "global_batch": 12}, "--global-batch"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(change: dict[str, object], word: str) -> None:
    work = workload("qwen2.5-0.5b", ("RTX 4090",))
    with pytest.raises(InputError, match=word):
        replace(work, **change)  # type: ignore[arg-type]


def test_a_card_without_enough_for_a_context_fits_nothing() -> None:
    work = workload("qwen2.5-0.5b", ("RTX 4090",))
    tiny = replace(work, cards=(Card("tiny", ComputeCapability(8, 9), 256 << 20),))
    assert isinstance(tiny, Workload)
    assert find_profile(tiny, load_matrix()).choice is None


def test_when_nothing_fits_it_says_what_would() -> None:
    answer = found("qwen2.5-7b", ["RTX 3060 12GB"], method="qlora", seq=1024)
    assert answer.choice is None
    assert "2 of this card would do" in answer.notes


def test_liger_that_is_not_known_to_be_there_is_an_answer() -> None:
    answer = found("qwen2.5-7b", ["RTX 3060 12GB"], method="qlora", seq=2048)
    assert answer.choice is None
    assert any("Liger" in note for note in answer.notes)
    installed = found(
        "qwen2.5-7b", ["RTX 3060 12GB"], method="qlora", seq=2048, stack={"liger-kernel": "0.8.5"}
    )
    assert installed.choice is not None


def test_one_larger_micro_batch_may_fit_where_several_that_add_up_do_not() -> None:
    answer = found("qwen2.5-14b", ("RTX 4090",) * 8, method="full", parallel="fsdp", seq=1024)
    assert answer.choice is not None  # FSDP keeps whole gradients between micro batches
    assert (answer.choice.batch, answer.choice.grad_accum) == (2, 1)
    assert any("ACCELERATE_USE_FSDP" in note for note in answer.notes)
