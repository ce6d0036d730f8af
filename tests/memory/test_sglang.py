"""What SGLang takes of a card: its share by release, what that leaves for keys, and whether it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.facts.quantities import MIB
from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import ServingRun, find_shape, read_constants
from envdoctor.memory.sglang import describe_static, usual_settings
from envdoctor.memory.verdicts import judge

GIB = 1 << 30
A10, L40, H100, H200, B200 = 24564, 46068, 81559, 143771, 183359
"""MiB of a card, as nvidia-smi tells it."""


@pytest.mark.parametrize(
    ("release", "mib", "tp", "share"),
    [
        ("0.4.0", H100, 1, 0.88),
        ("0.4.3", H100, 8, 0.81),
        ("0.4.5", A10, 2, 0.87),
        ("0.4.6", H200, 8, 0.907),  # 13 GiB stay out
        ("0.4.6.post1", H100, 4, 0.85),
        ("0.4.6.post5", H200, 1, 0.872),  # 18 GiB
        ("0.4.7", B200, 8, 0.79),
        ("0.4.8", A10, 1, 0.879),  # 2.9 GiB
        ("0.4.10", H100, 8, 0.8305),  # 9.5 GiB and half a GiB for each card
        ("0.5.2", B200, 8, 0.821),
        ("0.5.3", A10, 1, 0.848),  # 512 MiB, 3072 for a chunk, 32 for graphs, 128 for the card: 3744 in all
        ("0.5.3", H100, 1, 0.835),  # 512 + 12288 + 512 + 128
        ("0.5.9", L40, 4, 0.837),
        ("0.5.13", H100, 1, 0.830),  # 58 piecewise graphs of 8 MiB more
    ],
)
def test_a_release_has_its_own_share(release: str, mib: int, tp: int, share: float) -> None:
    rows = load_matrix().rows(tables.StaticShareRow)
    usual = usual_settings(rows, release, mib * MIB, (tp, 1), latent=False)
    assert usual is not None
    assert usual.share == pytest.approx(share, abs=0.0006)


def test_a_longer_chunk_and_a_larger_graph_leave_less() -> None:
    rows = load_matrix().rows(tables.StaticShareRow)
    usual = usual_settings(rows, "0.5.9", H100 * MIB, (1, 1), latent=False, chunk=16384, graphs=512)
    assert usual is not None
    assert usual.share == pytest.approx(1 - (512 + 1.5 * 16384 + 2 * 512 + 128) / H100, abs=0.0006)


def test_a_release_that_is_not_known_is_the_newest_and_one_before_the_first_is_none() -> None:
    rows = load_matrix().rows(tables.StaticShareRow)
    newest, unknown, old = (
        usual_settings(rows, release, H100 * MIB, (1, 1), latent=False) for release in ("0.5.13", None, "0.2")
    )
    assert newest == unknown
    assert old is None


def test_gpt_oss_keeps_fewer_tokens_in_layers_with_a_window() -> None:
    run = ServingRun(find_shape("gpt-oss-20b"), H100 * MIB, 0.85, engine="sglang")
    rows = load_matrix().rows(tables.MemoryRow)
    old, new = (describe_static(run, read_constants(rows, {"sglang": v})).tokens for v in ("0.5.7", "0.5.8"))
    assert new / old == pytest.approx(1 / 0.9, rel=0.001)  # half of the layers, four fifths of the tokens


SETTINGS = [
    ("Qwen/Qwen2.5-7B-Instruct", "RTX 4090", 1, "0.5.3", None, "starts"),
    ("Qwen/Qwen2.5-7B-Instruct", "RTX 4090", 1, "0.5.3", 0.6, "refuses"),
    ("Qwen/Qwen2.5-7B-Instruct", "RTX 4090", 1, "0.5.3", 0.97, "uncertain"),
    ("Qwen/Qwen2.5-14B-Instruct", "RTX 4090", 1, "0.4.6", None, "refuses"),
    ("Qwen/Qwen2.5-14B-Instruct", "RTX 4090", 2, "0.4.6", None, "starts"),
    ("Qwen/Qwen2.5-32B-Instruct", "H100-80GB", 1, "0.5.9", None, "starts"),
    ("Qwen/Qwen2.5-72B-Instruct", "H100-80GB", 2, "0.5.9", None, "refuses"),
    ("Qwen/Qwen2.5-72B-Instruct", "H100-80GB", 4, "0.5.9", None, "starts"),
    ("deepseek-ai/DeepSeek-R1", "H200", 8, "0.4.3", None, "starts"),
    ("deepseek-ai/DeepSeek-R1", "H100-80GB", 8, "0.4.3", None, "refuses"),
    ("meta-llama/Llama-3.1-8B-Instruct", "T4", 1, "0.5.9", None, "refuses"),
]


@pytest.mark.parametrize(("model", "card", "tp", "release", "share", "verdict"), SETTINGS)
def test_memory_and_diagnose_give_one_verdict(
    model: str, card: str, tp: int, release: str, share: float | None, verdict: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    asked = ("--model", model, "--task", "serve", "--gpu", card, "--tp", str(tp), "--format", "json")
    told = ("--mem-fraction-static", str(share)) if share else ()
    code = main(["memory", *asked, *told, "--stack", f"sglang={release}"])
    answer = json.loads(capsys.readouterr().out)
    said = "uncertain" if answer["uncertain"] else "starts" if answer["fits"] else "refuses"
    assert (said, code) == (verdict, 0 if answer["fits"] else 1)
    start = tmp_path / "start.txt"
    line = " ".join((f"python -m sglang.launch_server --model-path {model} --tp {tp}", *told))
    start.write_text(f"sglang=={release}\n\n{line}\n")
    main(["diagnose", "--from", str(start), *["--gpu", card] * tp, "--format", "json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    outcome = next(check["outcome"] for check in checks if check["rule"] == "SGLANG-SHARE")
    assert outcome == {"starts": "passed", "refuses": "failed", "uncertain": "skipped"}[verdict]


def test_what_helps_a_refused_engine_lets_it_start() -> None:
    constants = read_constants(load_matrix().rows(tables.MemoryRow), {"sglang": "0.5.9"})
    run = ServingRun(find_shape("qwen2.5-7b"), A10 * MIB, 0.5, engine="sglang")
    low = judge(run, constants).bounds.low
    assert judge(run, constants).refusal == "low"
    assert not judge(ServingRun(run.shape, run.gpu_bytes, low + 0.005, engine="sglang"), constants).refusal


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--vllm-utilization", "0.9"), "is of --engine vllm"),
        (("--max-num-seqs", "8"), "is of --engine vllm"),
        (("--mem-fraction-static", "1.4"), "is not in (0, 1]"),
    ],
)
def test_a_setting_of_the_other_engine_is_refused(
    options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--model", "qwen2.5-7b", "--task", "serve", "--gpu", "L40S", "--engine", "sglang")
    assert main(["memory", *asked, *options]) == 2
    assert why in capsys.readouterr().err
