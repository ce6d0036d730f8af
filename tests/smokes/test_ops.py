"""The ops themselves, on the CPU of an interpreter that has torch; and their files on the oldest Python."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path

import pytest

import envdoctor.smokes
from envdoctor.smokes import run_smokes
from envdoctor.smokes.planning import gpu_expected

ROOM = Path(envdoctor.smokes.__file__).parent
PLAIN = Path(__file__).resolve().parents[2] / "benchmarks" / "smoke_plain.py"
QUICKLY = "device*,matmul*,tri*,softmax*,layer_norm*,embedding*,cross_entropy*,conv2d*,sdpa*,amp*,bnb*"


@pytest.mark.parametrize("file", [*ROOM.glob("ops/*.py"), ROOM / "worker.py", ROOM / "measure.py"], ids=str)
def test_what_travels_is_python_3_8(file):
    ast.parse(file.read_text(), feature_version=(3, 8))


@pytest.mark.torch
@pytest.mark.slow
def test_every_op_with_a_cpu_path_passes(torch_python):
    report = run_smokes(torch_python, tuple(QUICKLY.split(",")), "cpu")
    bad = [result for result in report.results if result.outcome not in ("passed", "skipped")]
    assert bad == []
    assert sum(result.outcome == "passed" for result in report.results) >= 14


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(not gpu_expected(dict(os.environ)), reason="no NVIDIA GPU on this machine")
def test_every_applicable_op_passes_on_the_gpu(torch_python):
    report = run_smokes(torch_python, ("all",))
    bad = [result for result in report.results if result.outcome not in ("passed", "skipped")]
    assert bad == []


@pytest.mark.torch
@pytest.mark.slow
def test_a_wrong_result_of_any_op_is_caught(torch_python):
    """Each output of each op is spoiled in turn, by little more than its tolerance."""
    done = subprocess.run(
        [torch_python, PLAIN, "mutations", QUICKLY, "cpu"], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert answer["missed"] == []
    assert answer["ops"] >= 14
