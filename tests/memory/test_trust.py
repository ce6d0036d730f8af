"""What could be said for certain is; what could not is refused, taken the safe way and said, or traced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envdoctor.cli import main
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import Constants, TrainingRun, find_shape, parse_shape, predict
from envdoctor.memory.layout import parameters
from envdoctor.memory.optimizer import find_optimizer, state_bytes
from envdoctor.memory.recipes import recipe_of
from envdoctor.memory.run import DeepSpeed
from envdoctor.memory.serving import served_bytes
from envdoctor.memory.settings import settings_of
from envdoctor.memory.sharding import plan_of

STACK = ("--stack", "torch=2.11.0")
GIB = 1 << 30


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["memory", *arguments, *STACK, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["memory", *arguments, *STACK])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(("card", "gib"), [("A100", 40), ("V100", 16)])
def test_a_card_of_several_sizes_is_the_smallest_and_said_so(
    card: str, gib: float, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = ask(capsys, "--model", "qwen2.5-7b", "--gpu", card)
    assert code == 1
    assert answer["gpu_bytes"] == gib * GIB
    assert "taken as the smallest" in answer["assumptions"][0]


def test_a_card_whose_size_nothing_tells_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = refusal(capsys, "--model", "qwen2.5-7b", "--gpu", "RTX 3060")
    assert code == 2
    assert "'RTX 3060 12GB'" in said


def test_a_target_that_no_linear_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--model", "qwen2.5-7b", "--method", "lora", "--lora-targets")
    code, said = refusal(capsys, *asked, "q_proj,bogus_proj")
    assert code == 2
    assert "'bogus_proj' is no linear of qwen2.5-7b" in said
    assert ask(capsys, *asked, "q_proj,down_proj")[0] == 0


def test_a_length_beyond_the_models_positions_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _, answer = ask(capsys, "--model", "qwen2.5-7b", "--method", "lora", "--seq", "65536", "--liger")
    assert "beyond the 32768 positions" in answer["assumptions"][0]


def test_a_family_that_is_not_known_is_no_guess(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sizes = {"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4, "vocab_size": 1000}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "novel", "intermediate_size": 1024, **sizes}))
    code, said = refusal(capsys, "--model", str(config), "--python", "/nonexistent/python")
    assert code in (2, 3)
    assert "novel" in said or "python" in said


def test_towers_for_images_are_counted_and_said() -> None:
    text = {"model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 4,
            "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936}  # fmt: skip
    tower = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4}
    plain = parse_shape(text, "text")
    seeing = parse_shape({"model_type": "qwen2_vl", "text_config": text, "vision_config": tower}, "vl")
    assert parameters(seeing) - parameters(plain) == pytest.approx(0.675e9, rel=0.01)
    run = TrainingRun(seeing, "lora", seq=512)
    assert "tower of 0.68 billion parameters is counted" in predict(run).uncertain
    assert not predict(replace(run, images=0)).uncertain
    assert seeing.known


def test_stored_weights_stay_small_and_are_not_trained_in_full() -> None:
    config = {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
              "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064}  # fmt: skip
    shape = parse_shape({**config, "quantization_config": {"quant_method": "awq", "bits": 4}}, "awq")
    assert served_bytes(shape, 2) / GIB == pytest.approx(5.2, rel=0.02)  # as published: 5.2 GiB of files
    adapters = TrainingRun(shape, "lora", batch=1, seq=512)
    plain = TrainingRun(parse_shape(config, "plain"), "lora", batch=1, seq=512)
    assert plan_of(adapters).weights < 0.4 * plan_of(plain).weights
    with pytest.raises(Exception, match="stored as awq"):
        TrainingRun(shape, "full")


def test_one_verdict_on_a_budget_for_memory_and_diagnose(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = tmp_path / "serve.sh"
    for card, model, share in (
        ("RTX 4090", "qwen2.5-7b", 0.6), ("RTX 4090", "qwen2.5-7b", 0.9), ("RTX 4090", "qwen2.5-7b", 0.99),
    ):  # fmt: skip
        asked = ("--model", model, "--task", "serve", "--gpu", card, "--max-model-len", "8192")
        code, answer = ask(capsys, *asked, "--vllm-utilization", str(share))
        command.write_text(
            f"vllm serve Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization {share} --max-model-len 8192\n"
        )
        main(["diagnose", "--from", str(command), "--gpu", card, "--format", "json"])
        found = json.loads(capsys.readouterr().out)
        budgets = [f for f in found["findings"] if f["id"].startswith("VLLM-BUDGET")]
        assert answer["fits"] is not bool(budgets)
        assert code == (0 if answer["fits"] else 1)


def test_an_engine_that_would_not_start_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--model", "qwen2.5-7b", "--task", "serve", "--gpu", "RTX 4090", "--vllm-utilization", "0.6")
    code, answer = ask(capsys, *asked)
    assert (code, answer["fits"]) == (1, False)
    assert any("refuses to start" in note for note in answer["assumptions"])


def test_only_the_embedding_keeps_32_bit_states() -> None:
    adam = find_optimizer("adamw_8bit")
    table = 150_000 * 4096
    tied, untied = (
        state_bytes(adam, tensors, 2, table) for tensors in ([(table, 1)], [(table, 1), (table, 1)])
    )
    assert untied - tied == pytest.approx(2 * table * (1 + 4 / 256), rel=0.01)


def test_offloaded_states_of_stage_two_leave_a_buffer_and_a_norm() -> None:
    shape = find_shape("qwen2.5-7b")
    run = TrainingRun(shape, gpus=2, parallel="zero2", offload_optimizer=True, deepspeed=DeepSpeed())
    plan = plan_of(run)
    largest = shape.vocab * shape.hidden
    assert plan.buffers == pytest.approx(2 * largest, rel=0.01)
    assert plan.norm == pytest.approx(8 * largest, rel=0.01)


def test_fsdp_that_loads_on_the_meta_device_never_holds_the_whole() -> None:
    shape = find_shape("llama-2-70b")
    sharded = TrainingRun(shape, "lora", gpus=8, parallel="fsdp", batch=1, seq=512)
    assert predict(sharded).peak_allocated_bytes < 40 * GIB
    whole = TrainingRun(shape, "lora", gpus=8, parallel="fsdp", batch=1, seq=512, meta_load=False)
    assert predict(whole).peak_allocated_bytes > 120 * GIB


def test_quantised_layers_travel_as_they_are_stored_and_offloaded_ones_leave_the_card() -> None:
    shape = find_shape("llama-2-70b")
    run = TrainingRun(shape, "qlora", gpus=2, parallel="fsdp", batch=2, seq=2048, grad_accum=2)
    older = Constants(fsdp_version=1)  # transformers 5 puts all 4-bit weights on each card first
    assert predict(run, older).device_bytes > 24 * GIB
    assert predict(replace(run, offload_params=True), older).device_bytes < 24 * GIB
    assert predict(replace(run, offload_params=True)).load_peak_bytes > 34 * GIB


def test_a_tied_table_stays_whole_where_nothing_of_it_is_trained() -> None:
    tied, apart = find_shape("llama-3.2-1b"), find_shape("llama-3.1-8b")
    assert plan_of(TrainingRun(tied, "lora", gpus=2, parallel="fsdp")).resharded == 0
    assert plan_of(TrainingRun(apart, "lora", gpus=2, parallel="fsdp")).resharded > 2 * GIB - GIB // 8


def test_deepspeed_casts_what_k_bit_preparation_widened() -> None:
    shape = find_shape("qwen2.5-7b")
    assert settings_of(TrainingRun(shape, "qlora", gpus=2, parallel="zero2")).stream == 2
    assert settings_of(TrainingRun(shape, "qlora")).stream == 4


def test_flash_attention_is_never_costed_by_the_square_of_the_length() -> None:
    shape = find_shape("qwen2.5-0.5b")
    long, short = (
        predict(TrainingRun(shape, "lora", seq=seq, attn="flash_attention_2", dtype="fp32", liger=True))
        for seq in (16384, 8192)
    )
    assert long.peak_allocated_bytes < 2.1 * short.peak_allocated_bytes
    with pytest.raises(Exception, match="16 bits only"):
        TrainingRun(shape, "lora", attn="flash_attention_2", dtype="fp32", amp="none")


def test_adapters_on_all_linears_sit_on_experts_too() -> None:
    from envdoctor.memory.adapters import adapter_tensors

    shape = find_shape("qwen3-30b-a3b")
    trained = sum(n * count for n, count in adapter_tensors(shape, settings_of(TrainingRun(shape, "lora"))))
    assert trained == pytest.approx(498e6, rel=0.01)


def test_what_lies_outside_torch_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--model", "qwen2.5-1.5b", "--method", "lora", "--gpus", "2", "--task", "grpo", "--gpu", "H200")
    _, answer = ask(capsys, *asked, "--vllm-utilization", "0.3")
    outside = {part["name"]: part["bytes"] for part in answer["outside"]}
    assert set(outside) == {"CUDA context", "NCCL", "vLLM beside it"}
    assert answer["device_bytes"] == answer["peak_reserved_bytes"] + sum(outside.values())


def test_host_memory_of_what_is_offloaded_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    sharded = ("--model", "llama-3.1-70b", "--parallel", "zero3", "--gpus", "8", "--offload-params")
    _, adapters = ask(capsys, *sharded, "--method", "lora")
    assert "what is offloaded needs about 131 GiB of host memory over all ranks" in adapters["assumptions"]
    _, full = ask(capsys, *sharded, "--offload-optimizer")
    assert "what is offloaded needs about 1183 GiB of host memory over all ranks" in full["assumptions"]


@pytest.mark.parametrize(
    "flag",
    [
        "--tensor_model_parallel_size 8", "--pipeline_model_parallel_size 2", "--context_parallel_size 4",
        "--sequence_parallel_size 2", "--expert_model_parallel_size 8",
    ],
)  # fmt: skip
def test_a_model_that_cards_share_otherwise_is_not_predicted_from_a_file(
    flag: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = tmp_path / "train.sh"
    stated = "--model Qwen/Qwen2.5-32B --micro_batch_size 1 --max_length 4096 --train_type full"
    for given, found in (("", True), (flag, False)):
        command.write_text(f"swift megatron sft {stated} --optim adamw_torch {given}\n")
        main(["diagnose", "--from", str(command), "--gpu", "A100 80GB", "--format", "json"])
        told = json.loads(capsys.readouterr().out)
        assert any(f["id"] == "MEM-RUN" for f in told["findings"]) is found
    check = next(check for check in told["checks"] if check["rule"] == "MEM-RUN")
    assert flag.split()[0].lstrip("-") in check["reason"]


def test_a_run_of_a_family_that_is_not_known_is_not_predicted_from_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = tmp_path / "train.sh"
    command.write_text("swift sft --model Qwen/Qwen3.5-27B --train_type full --max_length 4096"
                       " --per_device_train_batch_size 8 --optim adamw_torch\n")  # fmt: skip
    main(["diagnose", "--from", str(command), "--gpu", "RTX 4090", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert not any(finding["id"] == "MEM-RUN" for finding in told["findings"])


@pytest.mark.parametrize(("release", "certain"), [("1.4.0", True), ("1.16.0", False)])
def test_what_would_fit_with_a_loss_in_chunks_is_no_certain_error(
    release: str, certain: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """TRL from 1.6 never holds the full logits, and the arguments do not tell whose trainer takes them."""
    train, listing = tmp_path / "train.sh", tmp_path / "pip.txt"
    train.write_text(
        "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 8 --max_length 1024"
        " --bf16 true --dtype bfloat16 --gradient_checkpointing true --optim adamw_torch_fused\n"
    )
    listing.write_text(f"torch==2.11.0\ntransformers==5.17.0\ntrl=={release}\n")
    asked = ["--from", str(train), "--from", str(listing), "--gpu", "RTX 3060 12GB"]
    main(["diagnose", *asked, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    found = {f["id"]: f["severity"] for f in told["findings"] if f["id"].startswith("MEM-RUN")}
    assert found == ({"MEM-RUN": "error"} if certain else {"MEM-RUN-TIGHT": "warning"})


@pytest.mark.parametrize(("line", "bytes_a_weight"), [("bf16: true", 16), ("pure_bf16: true", 8)])
def test_llamafactory_widens_what_it_trains_but_for_pure_bf16(
    line: str, bytes_a_weight: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "train.yaml"
    config.write_text(
        "model_name_or_path: Qwen/Qwen2.5-32B\nstage: sft\nfinetuning_type: full\ncutoff_len: 512\n"
        f"per_device_train_batch_size: 1\noptim: adamw_torch_fused\n{line}\n"
    )
    main(["diagnose", "--from", str(config), "--gpu", "H200", "--format", "json"])
    found = next(f for f in json.loads(capsys.readouterr().out)["findings"] if f["id"] == "MEM-RUN")
    need = float(found["summary"].split(" needs about ")[1].split(" GiB")[0])
    assert need == pytest.approx(bytes_a_weight * 32.76e9 / GIB, rel=0.07)


@pytest.mark.parametrize(("parallel", "width"), [("none", 4), ("ddp", 4), ("zero2", 2), ("zero3", 2)])
def test_deepspeed_casts_back_what_llamafactory_widened(parallel: str, width: int) -> None:
    recipe = recipe_of(load_matrix().rows(tables.TrainerRow), "llamafactory", "sft")
    cards = 1 if parallel == "none" else 2
    run = TrainingRun(find_shape("qwen2.5-0.5b"), gpus=cards, parallel=parallel, recipe=recipe)
    assert settings_of(run).weight == width
