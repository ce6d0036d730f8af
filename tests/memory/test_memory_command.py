"""`envdoctor memory`: answers, and one clear line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envdoctor.cli import main

STACK = ["--stack", "torch=2.11.0"]


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["memory", *arguments, *STACK, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_seven_billion_by_qlora_fit_24_gb(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(
        capsys, "--model", "qwen2.5-7b", "--method", "qlora", "--gpu", "RTX 4090", "--seq", "1024"
    )
    assert code == 0
    assert answer["fits"] is True
    assert answer["schema"] == "envdoctor.memory/1"
    assert answer["peak_allocated_bytes"] < answer["peak_reserved_bytes"] < answer["device_bytes"]
    assert sum(c["bytes"] for c in answer["components"]) == pytest.approx(
        answer["peak_allocated_bytes"], rel=0.01
    )


def test_thirteen_billion_on_three_unsharded_cards_cannot_fit(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "llama-2-13b", "--method", "lora", "--gpus", "3", "--gpu", "RTX 3090", "--seq", "256"]
    assert ask(capsys, *asked, "--parallel", "ddp")[0] == 1
    assert ask(capsys, *asked, "--parallel", "zero3")[0] == 0
    assert ask(capsys, *asked[:3], "qlora", *asked[4:], "--parallel", "ddp")[0] == 0


def test_scoring_beside_a_loaded_model_needs_a_lower_utilisation(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "--model",
        "qwen2.5-7b",
        "--method",
        "lora",
        "--gpu",
        "RTX A6000",
        "--task",
        "grpo",
        "--max-model-len",
        "2048",
    ]
    assert ask(capsys, *asked, "--vllm-utilization", "0.95")[0] == 1
    assert ask(capsys, *asked, "--vllm-utilization", "0.45")[0] == 0


def test_glm_4_9b_fits_an_a10_by_lora_only_with_short_rows(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "glm-4-9b", "--method", "lora", "--gpu", "A10"]
    assert ask(capsys, *asked, "--seq", "512")[0] == 0
    assert ask(capsys, *asked, "--seq", "4096")[0] == 1


def test_grpo_on_24_gb_needs_sharding_or_a_card_for_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "qwen2-7b", "--method", "lora", "--task", "grpo", "--gpus", "4", "--gpu", "RTX 3090"]
    asked += ["--seq", "1024", "--max-model-len", "1024"]
    assert ask(capsys, *asked, "--parallel", "zero2", "--vllm-utilization", "0.8")[0] == 1
    assert ask(capsys, *asked, "--parallel", "zero3", "--vllm-utilization", "0")[0] == 0


def test_a_serving_budget_has_two_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "qwen2.5-7b", "--task", "serve", "--gpu", "RTX 4090", "--max-model-len", "32768"]
    _, low = ask(capsys, *asked, "--vllm-utilization", "0.65")
    assert any("too low" in note for note in low["assumptions"])
    code, high = ask(capsys, *asked, "--vllm-utilization", "1.0")
    assert code == 1
    assert any("too high" in note for note in high["assumptions"])


def test_without_a_card_fit_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = ask(capsys, "--model", "llama-3.2-1b")
    assert code == 0
    assert answer["fits"] is None


def test_a_deepspeed_file_tells_stage_and_sizes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text(json.dumps({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}))
    _, stated = ask(capsys, "--model", "llama-3.2-1b", "--gpus", "4", "--deepspeed", str(file))
    _, named = ask(capsys, "--model", "llama-3.2-1b", "--gpus", "4", "--parallel", "zero3")
    assert stated["peak_allocated_bytes"] < named["peak_allocated_bytes"]


def test_text_draws_the_parts_and_html_is_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "--model", "llama-3.2-1b", "--seq", "8192", "--gpu", "T4", *STACK]) == 1
    text = capsys.readouterr().out
    assert "█" in text
    assert "does not fit" in text
    assert main(["memory", "--model", "llama-3.2-1b", "--gpu", "H200", *STACK, "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page


def test_the_peak_is_shown_against_batch_and_length(capsys: pytest.CaptureFixture[str]) -> None:
    run = [
        "--model",
        "llama-3.2-1b",
        "--method",
        "lora",
        "--batch",
        "4",
        "--seq",
        "2048",
        "--gpu",
        "T4",
        *STACK,
    ]
    main(["memory", *run])
    text = capsys.readouterr().out
    assert [line.split()[0] for line in bars(text, "batch")] == ["1", "2", "4", "8", "16"]
    assert bars(text, "length")[0].startswith("512 ")
    assert "✗" not in bars(text, "batch")[0]
    assert "✗|✗" in bars(text, "batch")[-1]
    main(["memory", *run, "--format", "html"])
    page = capsys.readouterr().out
    assert page.count("<h2>On the device by ") == 2
    assert "too much for the card</title>" in page


def test_a_target_tells_the_card_and_the_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tmp_path / "report.txt"
    told.write_text("GPU 0: NVIDIA GeForce RTX 4090\ntorch: 2.9.1\ntransformers: 4.57.1\n")
    run = ["--model", "llama-3.2-1b", "--method", "lora", "--format", "json"]
    assert main(["memory", *run, "--target", str(told)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["fits"] is True
    assert answer["gpu_bytes"] > 23 << 30


def bars(text: str, label: str) -> list[str]:
    return text.partition(f"On the device by {label}")[2].split("\n\n")[0].splitlines()[1:]


def test_lengths_beyond_the_learned_positions_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    main(["memory", "--model", "gpt2", "--method", "full", "--seq", "1024", *STACK])
    lengths = [line.split()[0] for line in bars(capsys.readouterr().out, "length")]
    assert lengths[-1] == "1024"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "no-such-model"], "no such folder, file or name"),
        (["--batch", "0"], "--batch: 0 is no count"),
        (["--seq", "-5"], "--seq: -5 is no count"),
        (["--method", "dpo"], "--method: 'dpo' is none of"),
        (["--optim", "adamw_magic"], "--optim adamw_magic: not known; nearest: adam"),
        (["--optim", "muon"], "transformers has none (--trainer llamafactory or ms-swift or axolotl)"),
        (["--optim", "galore_adamw", "--method", "lora"], "steps whole weights"),
        (["--optim", "galore_adamw", "--gpus", "2", "--parallel", "zero2"], "not shared out"),
        (["--optim", "lomo", "--grad-accum", "2"], "so not with --grad-accum"),
        (["--method", "prefix"], "peft refuses it with gradient checkpointing"),
        (["--method", "lisa"], "--trained-layers"),
        (["--method", "lora", "--trained-layers", "2"], "of --method freeze and lisa"),
        (["--method", "ia3", "--virtual-tokens", "9"], "of --method prompt and prefix"),
        (["--method", "ia3", "--model", "glm-4-9b"], "peft has no targets of its own for glm"),
        (["--method", "freeze", "--gpus", "2", "--parallel", "fsdp"], "each card holds the whole model"),
        (["--task", "distill"], "needs --teacher MODEL"),
        (["--teacher", "llama-3.1-8b"], "no other task has one"),
        (["--task", "distill", "--teacher", "gpt2"], "a divergence needs one vocabulary"),
        (["--cp", "2", "--gpus", "2"], "accelerate has it with --parallel fsdp"),
        (["--sp", "3", "--gpus", "3", "--parallel", "zero3", "--seq", "3000"], "--sp 3 does not divide"),
        (["--sp", "2", "--gpus", "2", "--trainer", "llamafactory"], "shares no rows"),
        (["--cp", "2", "--gpus", "2", "--parallel", "fsdp", "--seq", "33"], "shares rows of one length"),
        (["--ep", "2", "--gpus", "2"], "has no experts"),
        (["--offload-activations", "--no-grad-ckpt"], "counted with gradient checkpointing alone"),
        (["--gpu", "Card 0 GB"], "a card without memory"),
        (["--gpu", "Voodoo 2"], "no such card"),
        (["--gpu", "RTX 4900"], "RTX 4090"),
        (["--tp", "3", "--gpus", "3"], "--tp 3"),
        (["--gpus", "3", "--tp", "2"], "no multiple"),
        (["--offload-optimizer"], "need --parallel"),
        (["--parallel", "zero2", "--gpus", "2", "--offload-params"], "--offload-params needs"),
        (["--parallel", "ddp"], "needs --gpus of 2 or more"),
        (["--lora-dropout", "1.5", "--method", "lora"], "no probability"),
        (["--task", "serve"], "name a card"),
        (["--vllm-utilization", "7", "--task", "grpo"], "not in [0, 1]"),
        (["--deepspeed", "/no/such/file"], "cannot be read"),
        (["--stack", "torch"], "expected NAME=VERSION"),
        (["--dtype", "fp16", "--amp", "fp16"], "GradScaler"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = [] if "--model" in arguments else ["--model", "llama-3.2-1b"]
    stack = [] if "--stack" in arguments else STACK
    assert main(["memory", *model, *arguments, *stack]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["memory", *arguments, *STACK])
    return code, capsys.readouterr().out


def test_what_does_not_fit_is_told_with_each_change_that_alone_makes_it_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = ["--model", "qwen2.5-7b", "--method", "qlora", "--gpu", "RTX 4090", "--batch", "4"]
    code, told = text(capsys, *run)
    ways = told.split("Each of these alone would make it fit\n")[1].split("\n\n")[0].splitlines()
    assert code == 1
    assert [way.split("  ")[0] for way in ways] == ["--liger", "--batch 2", "--seq 1024"]
    for way in ways:
        assert text(capsys, *run, *way.split("  ")[0].split())[0] == 0
    assert "would make it fit" not in text(capsys, *run, "--liger")[1]


def test_gradients_at_the_end_of_the_backward_pass_are_called_gradients(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, told = ask(capsys, "--model", "mistral-nemo-12b", "--method", "full", "--gpu", "H100")
    sizes = {part["name"]: part["bytes"] for part in told["components"]}
    assert told["phase"] == "backward"
    assert sizes["gradients"] == pytest.approx(sizes["weights"], rel=0.01)
    assert "logits" not in sizes


@pytest.mark.parametrize("name", ["4xRTX 3090", "4 x RTX 3090", "RTX 3090 x4", "RTX 3090 ×4", "4× RTX 3090"])
def test_several_cards_are_as_many(capsys: pytest.CaptureFixture[str], name: str) -> None:
    run = ["--model", "llama-2-13b", "--method", "lora", "--seq", "256"]
    assert ask(capsys, *run, "--gpu", name) == ask(capsys, *run, "--gpus", "4", "--gpu", "RTX 3090")


def test_two_numbers_of_cards_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--model", "qwen2.5-7b", "--method", "lora"]
    assert main(["memory", *run, "--gpu", "4xRTX 3090", "--gpus", "2", *STACK]) == 2
    assert "--gpus 2: --gpu 4xRTX 3090 names 4" in capsys.readouterr().err
    assert main(["memory", *run, "--gpu", "0xH100", *STACK]) == 2
    assert "--gpu 0xH100: no card" in capsys.readouterr().err
