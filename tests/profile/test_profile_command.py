"""`envdoctor profile` at its edges: exit codes, files, JSON, one line for an unusable call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor.cli import main


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["profile", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_json_has_the_promised_shape(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--model", "qwen2.5-7b", "--gpu", "RTX 4090", "--format", "json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert data["schema"] == "envdoctor.profile/1"
    assert {"method", "parallel", "batch", "grad_accum", "grad_ckpt"} <= set(data["choice"])
    assert data["memory"]["schema"] == "envdoctor.memory/1"
    assert data["memory"]["fits"] is True
    assert all({"choice", "why"} <= set(item) for item in data["rejected"])
    assert data["validated"]["status"] == "predicted"
    assert "training_args.json" in data["files"]


def test_files_are_written_to_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "run"
    code, out, err = call(
        capsys, "--model", "qwen2.5-7b", "--gpu", "RTX 4090", "--for", "llamafactory", "-o", str(folder)
    )
    assert code == 0
    assert "train.yaml written" in err
    assert "qwen2.5-7b on 1" in out
    assert "finetuning_type: lora" in (folder / "train.yaml").read_text()
    assert (folder / "env.sh").read_text().startswith("export PYTORCH_ALLOC_CONF=")


def test_a_setting_says_for_which_rows_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    run = ("--model", "qwen2.5-0.5b", "--gpu", "RTX 4090", "--method", "full", "--seq", "1024")
    _, alike, _ = call(capsys, *run)
    assert "holds for rows of 1024 tokens, all alike; shorter ones" in " ".join(alike.split())
    code, uneven, _ = call(capsys, *run, "--shortest-row", "256")
    assert code == 0
    assert "holds for rows of 256 to 1024 tokens" in " ".join(uneven.split())
    code, _, err = call(capsys, *run, "--shortest-row", "2048")
    assert (code, err.strip()) == (
        2, "envdoctor: --shortest-row 2048: rows have 1 to 1024 tokens (--seq)",
    )  # fmt: skip


def test_nothing_fits_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(
        capsys, "--model", "llama-3.1-70b", "--gpu", "RTX 4090", "--method", "lora", "--parallel", "none"
    )
    assert code == 1
    assert "nothing fits" in out


def test_what_is_written_for_an_engine_is_an_engine_to_serve_with(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--model", "qwen2.5-7b", "--gpu", "L40S", "--for", "vllm")
    assert code == 0
    assert "max-num-seqs: 256" in out
    code, out, _ = call(capsys, "--model", "mistral-small-24b", "--gpu", "L40S", "--for", "vllm")
    assert code == 1
    assert "max_num_seqs 16" in " ".join(out.split())


@pytest.mark.parametrize(
    ("gpus", "split", "told"),
    [("1", "", ""), ("3", "data-parallel-size: 3", "3 engines side by side")],
)
def test_no_card_of_an_engine_idles(
    gpus: str, split: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(
        capsys, "--model", "qwen2.5-7b", "--gpu", "L40S", "--gpus", gpus, "--task", "serve", "--for", "vllm"
    )
    assert code == 0
    assert ("data-parallel-size" in out) is bool(split)
    assert split in out
    assert told in " ".join(out.split())


def test_cards_that_an_engine_cannot_use_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--model", "qwen3-32b", "--gpu", "L40S", "--gpus", "3", "--task", "serve", "--for", "vllm")
    code, out, _ = call(capsys, *words)
    assert code == 0
    assert "1 card of 3 left over" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--model", "no-such-model", "--gpu", "RTX 4090"), "no-such-model"),
        (("--model", "qwen2.5-7b", "--gpu", "Voodoo 2"), "Voodoo 2"),
        (("--model", "qwen2.5-7b", "--gpu", "sm_89"), "memory is not known"),
        (("--model", "qwen2.5-7b", "--gpu", "RTX 4090", "--gpus", "0"), "--gpus"),
        (("--model", "qwen2.5-7b", "--gpu", "RTX 4090", "--seq", "-1"), "--seq"),
        (("--model", "qwen2.5-7b", "--gpu", "RTX 4090", "--for", "nope"), "--for"),
        (("--model", "qwen2.5-7b", "--gpu", "RTX 4090", "--stack", "torch"), "--stack"),
        (("--model", "qwen2.5-7b", "--gpu", "A10", "--gpu", "T4", "--gpus", "3"), "--gpus 3"),
        (("--model", "qwen2.5-7b", "--gpu", "A10", "--gpus", "3", "--global-batch", "8"), "--global-batch 8"),
        (("--model", "qwen2.5-7b", "--gpu", "A10", "--parallel", "ddp"), "--parallel ddp"),
    ],
)
def test_an_unusable_call_is_one_line_and_2(
    words: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, *words)
    assert code == 2
    assert out == ""
    assert named in err
    assert err.count("\n") == 1


def test_the_stack_decides_names(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--model",
        "qwen2.5-1.5b",
        "--gpu",
        "RTX 4090",
        "--for",
        "trl",
        "--stack",
        "trl=0.15.2,torch=2.6.0",
    )
    _, out, _ = call(capsys, *words)
    assert "max_seq_length: 2048" in out
    assert "PYTORCH_CUDA_ALLOC_CONF" in out


def test_a_target_file_tells_cards_and_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paste = tmp_path / "report.md"
    paste.write_text("GPU: NVIDIA A100-SXM4-80GB\ntorch: 2.6.0\ntrl: 0.15.2\n")
    code, out, _ = call(capsys, "--model", "qwen2.5-7b", "--target", str(paste), "--for", "trl")
    assert code == 0
    assert "A100" in out
    assert "max_seq_length" in out


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("llamafactory --method freeze --trained-layers 4", "freeze_trainable_layers: 4"),
        ("llamafactory --method badam", "use_badam: true"),
        ("llamafactory --optim galore_adamw --optim-rank 64", "galore_rank: 64"),
        ("llamafactory --optim adam_mini", "use_adam_mini: true"),
        ("axolotl --method lisa --trained-layers 3", "lisa_n_layers: 3"),
        ("axolotl --optim muon", "optimizer: muon"),
        ("ms-swift --method lisa --trained-layers 3", "lisa_activated_layers: 3"),
        ("ms-swift --optim galore_adamw", "use_galore: true"),
        ("trl --optim apollo_adamw_layerwise", 'optim_args: "rank=128"'),
        ("transformers --method prefix --virtual-tokens 9", '"num_virtual_tokens": 9'),
        ("transformers --method ia3", '"ia3_config"'),
    ],
)
def test_a_method_is_written_in_the_frameworks_own_words(
    words: str, written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    framework, *more = words.split()
    asked = ("--model", "llama-3.2-1b", "--gpu", "A100 80GB", "--seq", "512", "--for", framework)
    code, _, err = call(capsys, *asked, *more, "-o", str(tmp_path), "--stack", "torch=2.11.0")
    assert code == 0, err
    assert any(written in file.read_text() for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("trl --method freeze", "--for trl: it has no --method freeze; llamafactory has"),
        ("ms-swift --method badam", "--for ms-swift: it has no --method badam; llamafactory has"),
        ("trl --optim muon", "trl has none (--trainer llamafactory or ms-swift or axolotl)"),
        ("llamafactory --method lora --optim galore_adamw", "steps whole weights"),
        ("llamafactory --stack llamafactory=0.8.0 --optim muon", "its release has no use_muon"),
        ("transformers --optim lomo --validate", "--validate: of full, lora and qlora"),
    ],
)
def test_what_a_framework_has_no_words_for_is_said(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    framework, *more = words.split()
    code, _, err = call(
        capsys, "--model", "llama-3.2-1b", "--gpu", "A100 80GB", "--seq", "512", "--for", framework, *more
    )
    assert code == 2
    assert said in err


def test_rows_of_an_optimizer_that_steps_at_once_are_never_accumulated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = call(
        capsys, "--model", "llama-3.2-1b", "--gpu", "RTX 4090", "--optim", "lomo", "--format", "json"
    )
    assert code == 0
    assert json.loads(out)["choice"]["grad_accum"] == 1
