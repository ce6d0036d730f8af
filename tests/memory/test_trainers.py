"""Whose trainer it is decides the peak: its loss, its reference model, its upcasts, release by release."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from measured_points import read_points

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import Constants, find_shape, predict, read_constants
from envdoctor.memory.layout import layers, outer_tensors
from envdoctor.memory.model_config import parse_shape
from envdoctor.memory.recipes import recipe_of
from envdoctor.memory.references import reference_bytes
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.settings import settings_of
from envdoctor.memory.sharding import plan_of

POINTS = Path(__file__).parent / "points"
MODEL = ("--model", "qwen2.5-0.5b", "--batch", "2", "--seq", "1024")


@pytest.fixture(scope="module")
def constants() -> Constants:
    return read_constants(load_matrix().rows(tables.MemoryRow), {}, (9, 0))


def peak(capsys: pytest.CaptureFixture[str], *arguments: str, stack: str = "torch=2.11.0") -> int:
    assert main(["memory", *MODEL, *arguments, "--stack", stack, "--format", "json"]) == 0
    return int(json.loads(capsys.readouterr().out)["peak_allocated_bytes"])


@pytest.mark.parametrize("file", sorted(POINTS.glob("trl_*.json")), ids=lambda f: f.stem)
def test_peaks_of_trls_own_trainers_are_met(file: Path, constants: Constants) -> None:
    errors = [
        abs(predict(p.run, constants).peak_allocated_bytes / p.allocated - 1) for p in read_points(file)
    ]
    assert statistics.mean(errors) <= 0.03
    assert max(errors) <= 0.08


def test_trl_never_holds_all_logits_since_1_15(capsys: pytest.CaptureFixture[str]) -> None:
    new, old, plain = (
        peak(capsys, *arguments, stack=stack)
        for arguments, stack in (
            (("--trainer", "trl"), "trl=1.16.0"),
            (("--trainer", "trl"), "trl=1.0.0"),
            ((), "torch=2.11.0"),
        )
    )
    assert new < 0.7 * plain
    assert old >= 0.99 * plain


def test_a_comparison_holds_two_texts_a_row_and_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    sft = peak(capsys, "--method", "full", "--trainer", "trl")
    dpo = peak(capsys, "--method", "full", "--task", "dpo")
    reward = peak(capsys, "--method", "full", "--task", "reward")
    weights = 2 * 494_032_768
    assert dpo > sft + weights
    assert reward < dpo - weights


def test_adapters_switched_off_are_the_reference_of_adapters(capsys: pytest.CaptureFixture[str]) -> None:
    lora = peak(capsys, "--method", "lora", "--task", "dpo")
    full = peak(capsys, "--method", "full", "--task", "dpo")
    assert lora < 0.5 * full


def test_llama_factory_widens_what_it_trains_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    factory = peak(capsys, "--method", "full", "--trainer", "llamafactory")
    widened = peak(capsys, "--method", "full", "--dtype", "fp32")
    assert factory == widened
    assert peak(capsys, "--method", "lora", "--trainer", "llamafactory") == peak(capsys, "--method", "lora")


def test_trls_qlora_is_not_upcast_since_0_26(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--method", "qlora", "--task", "reward")
    assert peak(capsys, *asked, stack="trl=1.16.0") < peak(capsys, *asked, stack="trl=0.24.0")


def test_a_task_without_a_trainer_takes_trls(capsys: pytest.CaptureFixture[str]) -> None:
    main(["memory", *MODEL, "--task", "dpo", "--stack", "trl=1.16.0", "--format", "json"])
    notes = json.loads(capsys.readouterr().out)["assumptions"]
    assert any(note.startswith("trl 1.16.0, dpo: the loss in tiles") for note in notes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task", "dpo", "--trainer", "transformers"], "--task dpo: transformers is not known to have it"),
        (
            ["--task", "grpo", "--trainer", "llamafactory"],
            "--task grpo: llamafactory is not known to have it",
        ),
    ],
)
def test_what_a_trainer_does_not_have_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", *MODEL, *arguments, "--stack", "torch=2.11.0"]) == 2
    assert said in capsys.readouterr().err


def test_ppos_value_model_is_trained_beside_the_policy_and_a_reward_model_lies_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["memory", *MODEL, "--task", "ppo", "--stack", "trl=1.12.0", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    parts = {part["name"]: part["bytes"] for part in answer["components"]}
    models = parts["reference, reward and value models"]
    assert models == pytest.approx(3 * parts["weights"] + parts["optimizer states"], rel=0.02)
    assert "taken to be as large as the policy" in answer["uncertain"]


def test_a_task_that_a_release_no_longer_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", *MODEL, "--task", "ppo", "--stack", "trl=1.16.0"]) == 2
    assert "--task ppo: not in that release, but in trl<1.13" in capsys.readouterr().err


def test_autocast_keeps_copies_of_a_reference_that_nobody_froze(constants: Constants) -> None:
    config = {
        "hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 64, "vocab_size": 32000, "tie_word_embeddings": False, "num_hidden_layers": 12,
        "model_type": "llama",
    }  # fmt: skip
    recipe = recipe_of(load_matrix().rows(tables.TrainerRow), "trl", "kto", {"trl": "1.5.0"})
    run = TrainingRun(
        parse_shape(config, "tinyllama"), "full", batch=2, seq=1024, task="kto", trainer="trl", recipe=recipe
    )
    found = predict(run, constants)
    assert found.peak_allocated_bytes / (1 << 30) == pytest.approx(8.077, rel=0.01)
    assert found.peak_reserved_bytes / (1 << 30) > 8.812


def test_rows_hold_by_release() -> None:
    rows = load_matrix().rows(tables.TrainerRow)
    losses = {
        v: recipe_of(rows, "trl", "sft", {"trl": v}).loss
        for v in ("0.15.2", "1.6.0", "1.7.0", "1.14.2", "1.15.0")
    }
    assert list(losses.values()) == ["full", "full", "checkpointed", "checkpointed", "tiled"]
    assert recipe_of(rows, "trl", "sft", {}).loss == "tiled"
    with pytest.raises(InputError, match="none of"):
        recipe_of(rows, "nemo", "sft", {})


def test_axolotl_widens_what_lies_outside_the_layers_in_full_training() -> None:
    shape = find_shape("qwen3-0.6b")
    rows = load_matrix().rows(tables.TrainerRow)
    own = TrainingRun(shape, trainer="axolotl", recipe=recipe_of(rows, "axolotl", "sft"))
    plain = replace(own, trainer="transformers", recipe=recipe_of(rows, "transformers", "sft"))
    norms = sum(n * count for layer, count in layers(shape) for n in layer.vectors)
    outer = sum(outer_tensors(shape)) + norms
    assert _states(own) - _states(plain) == pytest.approx(6 * outer, rel=0.01)  # weights and two states
    for other in ({"method": "lora"}, {"attn": "flash_attention_2"}, {"parallel": "zero2", "gpus": 2}):
        assert _states(replace(own, **other)) == _states(replace(plain, **other))


@pytest.mark.parametrize(
    ("stack", "loss", "held"),
    [
        ({}, "kernel", 0),  # the newest asks for TRL 1.14, which has a kernel of its own
        ({"axolotl": "0.20.0"}, "kernel", 1),  # TRL 1.13's function is replaced, by one that copies
        ({"axolotl": "0.20.0", "trl": "1.15.0"}, "tiled", 0),  # what is told counts
        ({"axolotl": "0.15.0", "trl": "1.9.0"}, "logprobs", 0),
    ],
)
def test_axolotl_compares_as_the_trl_does_that_it_asks_for(
    stack: dict[str, str], loss: str, held: int
) -> None:
    recipe = recipe_of(load_matrix().rows(tables.TrainerRow), "axolotl", "dpo", stack)
    assert (recipe.loss, recipe.held) == (loss, held)


def test_what_a_loader_widens_is_wide_in_the_reference_as_well() -> None:
    shape, rows = find_shape("qwen3-0.6b"), load_matrix().rows(tables.TrainerRow)
    recipe = recipe_of(rows, "axolotl", "dpo", {"axolotl": "0.20.0"})
    run = TrainingRun(shape, trainer="axolotl", task="dpo", recipe=recipe)
    plan = plan_of(run)
    assert reference_bytes(run, plan) == plan.weights > 2 * sum(outer_tensors(shape))


def _states(run: TrainingRun) -> int:
    """Bytes of weights and optimizer states."""
    return sum(part.bytes for part in predict(run).components if part.name in ("weights", "optimizer states"))


def test_where_experts_are_adapted_no_dense_matrix_of_that_name_is() -> None:
    config = {
        "model_type": "deepseek_v3", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 512, "moe_intermediate_size": 64, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32, "v_head_dim": 32,
        "vocab_size": 1000,
    }  # fmt: skip
    shape = parse_shape(config, "config.json")
    run = TrainingRun(shape, "lora")
    inner = settings_of(run)
    assert not any(inner.targeted(role) for role in ("gate", "up", "down", "shared_gate"))
    assert inner.targeted("kv_a")
    assert inner.targeted("experts")
    named = settings_of(replace(run, lora_targets="gate_proj"))
    assert named.targeted("gate")
    dense = settings_of(replace(run, shape=find_shape("qwen3-0.6b")))
    assert dense.targeted("gate")


def test_shared_experts_are_counted_by_every_name_of_their_number() -> None:
    config = {
        "model_type": "ernie4_5_moe", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 512, "moe_intermediate_size": 64, "moe_num_experts": 4, "moe_k": 2,
        "moe_num_shared_experts": 2, "vocab_size": 1000,
    }  # fmt: skip
    experts = parse_shape(config, "config.json").experts
    assert experts is not None
    assert experts.shared_width == 128


def test_prompts_of_a_step_go_through_adapters_in_fp32_at_once(constants: Constants) -> None:
    """peft's `generate` passes the forward that accelerate wraps in autocast; 6.60 GiB on an H200."""
    recipe = recipe_of(load_matrix().rows(tables.TrainerRow), "trl", "grpo", {"trl": "1.16.0"})
    shape = find_shape("qwen2.5-1.5b")
    told = {"batch": 16, "seq": 768, "grad_accum": 4, "task": "grpo", "trainer": "trl", "recipe": recipe}
    found = predict(TrainingRun(shape, "lora", expandable_segments=True, **told), constants)
    assert found.phase == "generate"
    assert found.peak_allocated_bytes == pytest.approx(6.60 * (1 << 30), rel=0.03)


def test_axolotl_shuffles_rows_so_that_a_batch_may_be_of_one_kind() -> None:
    rows = load_matrix().rows(tables.TrainerRow)
    stack = {"axolotl": "0.20.0", "trl": "1.13.0"}
    own = recipe_of(rows, "axolotl", "kto", stack)
    assert (own.logged, own.reference_fp32) == ("alike", True)  # the reference is the one that TRL loads
    assert recipe_of(rows, "trl", "kto", stack).logged == "desired"
