"""Slices of the real model: two depths, extended to all layers; the child under fake tensors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from envdoctor.errors import Unavailable
from envdoctor.memory import Constants, TrainingRun, parse_shape, predict
from envdoctor.memory.measure import measure_run
from envdoctor.memory.slices import CHILD, Slices, corrected, depths_of, job_of, run_slices
from envdoctor.memory.trace import trace_run

CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 4096,
}
RUN = TrainingRun(parse_shape(CONFIG, "small"), batch=2, seq=512, grad_ckpt=False)


def python_with_torch() -> str:
    """The interpreter named by ENVDOCTOR_TORCH_PYTHON, or the one on PATH when it has torch."""
    python = os.environ.get("ENVDOCTOR_TORCH_PYTHON") or shutil.which("python3") or ""
    code = (
        "import importlib.util as u,sys;sys.exit(not (u.find_spec('torch') and u.find_spec('transformers')))"
    )
    if not python or subprocess.run([python, "-c", code], check=False).returncode:
        pytest.skip("no interpreter with torch and transformers")
    return python


LORA = replace(RUN, method="lora", lora_rank=4, lora_dropout=0.1, attn="flash_attention_2", liger=True)
LORA = replace(LORA, grad_accum=2)
JOB = {
    "config": CONFIG, "layers": (1, 2), "dtype": "bfloat16", "amp": "bfloat16", "rank": 4, "targets": "all",
    "dropout": 0.1, "dora": False, "copied": None, "adapter_fp32": True, "checkpoint": False,
    "reentrant": False, "batch": 2, "seq": 512,
    "accumulating": True, "quant": "", "double_quant": True, "upcast": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("run", "mode", "told"),
    [
        (LORA, "trace", {"mode": "trace", "attn": "sdpa", "liger": False}),
        (LORA, "measure", {"mode": "measure", "attn": "flash_attention_2", "liger": True}),
        (replace(LORA, method="qlora"), "trace", {"mode": "trace", "attn": "sdpa", "liger": False}),
        (
            replace(LORA, method="qlora", liger=False, lora_targets="qv"),
            "measure",
            {
                "mode": "measure",
                "attn": "flash_attention_2",
                "liger": False,
                "quant": "nf4",
                "targets": ["q_proj", "v_proj"],
            },
        ),
        (
            replace(LORA, method="full", attn="eager", grad_accum=1, lora_targets="up_proj, o_proj"),
            "trace",
            {
                "mode": "trace",
                "attn": "eager",
                "liger": False,
                "rank": 0,
                "accumulating": False,
                "targets": ["up_proj", "o_proj"],
            },
        ),
    ],
)
def test_the_child_is_told_the_run(run: TrainingRun, mode: str, told: dict[str, object]) -> None:
    assert job_of(run, CONFIG, mode) == {**JOB, **told}


def test_phases_are_extended_each_on_its_own_line() -> None:
    slices = Slices((1, 2), {"forward": 100}, {"forward": 130}, {})
    assert slices.extended("forward", 28) == 100 + 27 * 30


def test_the_backward_pass_is_highest_at_its_end_when_gradients_outgrow_activations() -> None:
    shallow = {
        "backward_loss": 100, "live_after_loss": 20, "backward_layers": 60,
        "live_after_layers": 40, "backward_end": 55,
    }  # fmt: skip
    deep = {
        **shallow,
        "backward_loss": 101,
        "live_after_loss": 21,
        "live_after_layers": 60,
        "backward_end": 75,
    }
    assert Slices((1, 2), shallow, deep, {}).backward(2) == 101
    assert Slices((1, 2), shallow, deep, {}).backward(10) == 40 + 9 * 20 + (60 - 40)


def test_depths_differ_by_whole_periods_of_the_layers_kinds() -> None:
    windowed = replace(RUN.shape, window=128, windowed_layers=5)
    assert depths_of(RUN, {}) == (1, 2)
    assert depths_of(replace(RUN, shape=windowed), {}) == (6, 12)


def test_a_slice_moves_the_phases_that_it_saw_and_nothing_that_lasts() -> None:
    constants = Constants()
    plain = predict(RUN, constants)
    heights = {"forward": 10**9, "backward_end": 2 * 10**9}
    moved = corrected(RUN, plain, Slices((1, 2), heights, heights, {"torch": "9"}), constants, "trace")
    lasting = sum(c.bytes for c in plain.components if c.name in ("weights", "optimizer states"))
    assert moved.peak_allocated_bytes == lasting + 2 * 10**9 + 2 * constants.cublas_workspace
    assert moved.phase == "backward"
    assert moved.phases["optimizer"] == plain.phases["optimizer"]


def test_an_interpreter_without_torch_is_told() -> None:
    job = job_of(RUN, CONFIG, "trace")
    assert json.loads(json.dumps(job))["layers"] == [1, 2]
    with pytest.raises(Unavailable, match="/no/such/python"):
        run_slices(RUN, CONFIG, "trace", "/no/such/python")


HEIGHTS = {
    "forward": 10_000_000, "backward_end": 22_000_000, "outside": 700 << 20, "reserved": 36_000_000,
    "allocated": 32_000_000,
}  # fmt: skip
DEEP = {**HEIGHTS, "forward": 11_000_000, "backward_end": 24_500_000}
ANSWER = {"layers": {"1": HEIGHTS, "2": DEEP}, "versions": {"torch": "9"}}


def answering(folder: Path, says: str, code: int = 0) -> str:
    """An interpreter that says the same whatever it is told, on stderr where it fails."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat >/dev/null\ncat <<'E' >&{1 + bool(code)}\n{says}\nE\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_a_measured_slice_brings_its_context_and_how_much_it_held(tmp_path: Path) -> None:
    constants, two = Constants(), replace(RUN, gpus=2, parallel="ddp")
    python = answering(tmp_path, json.dumps(ANSWER))
    for run, nccl in ((RUN, 0), (two, constants.nccl("ddp"))):
        plain = predict(run, constants)
        said = measure_run(run, CONFIG, plain, constants, python)
        moved = corrected(run, plain, Slices((1, 2), HEIGHTS, DEEP, {"torch": "9"}), constants, "measure")
        assert said.phases == moved.phases
        assert said.device_bytes == moved.peak_reserved_bytes + (700 << 20) + nccl
        assert said.method == "measured"
        assert said.assumptions[-2:] == (
            "layers from slices (1, 2) deep, with torch 9",
            "measured: 700 MiB outside torch; the slice reserved 1.125 of what it allocated",
        )


def test_a_traced_slice_says_that_it_was_traced(tmp_path: Path) -> None:
    plain = predict(RUN, Constants())
    said = trace_run(RUN, CONFIG, plain, Constants(), answering(tmp_path, json.dumps(ANSWER)))
    assert said.method == "trace"
    assert said.components[-1].name == "workspace and transients"


@pytest.mark.parametrize(
    ("says", "code", "why"),
    [
        ('{"error": "no torch"}', 0, "no torch"),
        ("first\nlast words", 1, "last words"),
        ("", 0, "no answer"),
        ("[]", 0, "its answer is no measurement"),
        (json.dumps({**ANSWER, "layers": {"1": HEIGHTS}}), 0, "its answer is no measurement"),
        (json.dumps({**ANSWER, "layers": {"1": HEIGHTS, "2": {}}}), 0, "its answer is no measurement"),
    ],
)
def test_a_child_that_does_not_answer_is_told(says: str, code: int, why: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=rf"^--trace: .*/python: {why}$"):
        run_slices(RUN, CONFIG, "trace", answering(tmp_path, says, code))


def test_the_child_runs_from_its_text_alone() -> None:
    assert "from envdoctor" not in CHILD.read_text(encoding="utf-8")


@pytest.mark.torch
@pytest.mark.parametrize("method", ["full", "lora"])
def test_the_analytic_tier_agrees_with_the_traced_class(method: str) -> None:
    run = replace(RUN, method=method)
    plain = predict(run, Constants())
    slices = run_slices(run, CONFIG, "trace", python_with_torch())
    traced = corrected(run, plain, slices, Constants(), "trace")
    assert traced.peak_allocated_bytes == pytest.approx(plain.peak_allocated_bytes, rel=0.02)
