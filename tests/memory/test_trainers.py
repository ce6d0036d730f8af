"""Whose trainer it is decides the peak: its loss, its reference model, its upcasts, release by release."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from measured_points import read_points

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import Constants, predict, read_constants
from envdoctor.memory.recipes import recipe_of

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


def test_what_ppo_holds_beside_is_said_not_to_be_counted(capsys: pytest.CaptureFixture[str]) -> None:
    main(["memory", *MODEL, "--task", "ppo", "--stack", "trl=1.16.0", "--format", "json"])
    assert "not counted" in json.loads(capsys.readouterr().out)["uncertain"]


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
