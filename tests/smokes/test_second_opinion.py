"""What decides cannot be fooled: numbers are counted without torch, and by a second implementation."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from envdoctor.smokes import holding, measure
from envdoctor.smokes.catalogue import read_catalogue
from envdoctor.smokes.judging import Numbers, off
from envdoctor.smokes.ops.registry import Op
from envdoctor.smokes.report import render
from envdoctor.smokes.verdicts import SmokeReport, SmokeResult

MANY = 61_440


def test_one_element_of_many_that_is_off_by_half_is_caught():
    truth = Numbers((MANY,), [1.0, -2.0] * (MANY // 2))
    got = Numbers((MANY,), list(truth.values))
    got.values[777] *= 1.5
    error, fault = off(got, truth, (1e-2, 8.0), 0)
    assert error < 1e-2
    assert fault == f"output 0: element 777 of {MANY} is off by 1 where -2 belongs"


def test_rounding_is_no_fault():
    truth = Numbers((MANY,), [1.0, -2.0] * (MANY // 2))
    got = Numbers((MANY,), [value * 1.004 for value in truth.values])
    assert off(got, truth, (1e-2, 8.0), 0)[1] == ""


def test_a_library_that_patches_its_own_norm_is_not_asked(verdicts):
    found = verdicts("blind_norm", "last")
    assert (found["blind_norm"].outcome, found["last"].outcome) == ("failed", "passed")
    assert "off by 0.0224" in found["blind_norm"].reason


def test_a_reference_of_zeros_proves_nothing(verdicts):
    found = verdicts("zeroed")["zeroed"]
    assert found.outcome == "failed"
    assert "reference 0 is zero throughout: its inputs were never drawn" in found.reason


def test_a_library_that_was_its_own_judge_is_told(verdicts, monkeypatch, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('libopenblas.so.0')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    found = verdicts("own_judge", "none")
    assert (found["own_judge"].outcome, found["none"].reason) == ("passed", None)
    assert found["own_judge"].reason == "torch was its own judge: no NumPy imports there"
    assert "passed  fault.own_judge" in render(SmokeReport("cpu", (found["own_judge"],)))


def test_a_second_implementation_decides(verdicts, monkeypatch, tmp_path):
    (tmp_path / "numpy.py").write_text(
        "class array:\n"
        "    def __init__(self, values): self.values = values\n"
        "    shape = property(lambda self: (len(self.values),))\n"
        "    ravel = lambda self: self\n"
        "    tolist = lambda self: list(self.values)\n"
        "asarray = lambda one: one\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    found = verdicts("own_judge", "none")
    assert found["own_judge"].outcome == "failed"
    assert "torch's own reference in float64 is wrong: output 0 is off by" in found["own_judge"].reason
    assert found["none"].outcome == "passed"


NOISE = {
    "words on standard output": "print('Welcome to the cluster! ' * 9)",
    "lines like answers": 'print(\'{"event": "ready", "devices": []}\')',
    "much of it": "import os\nfor _ in range(200): os.write(1, b'x' * 100_000)",
    "a thread that never ends": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(3600,)).start()",
    "an exit handler that hangs": "import atexit, time\natexit.register(time.sleep, 3600)",
}


@pytest.mark.parametrize("kind", NOISE)
def test_what_the_start_of_python_does_stops_neither_the_list_nor_the_ops(
    kind, verdicts, monkeypatch, tmp_path
):
    (tmp_path / "sitecustomize.py").write_text(NOISE[kind])
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    assert any(op.name == "fault.none" for op in read_catalogue(sys.executable, 60.0).ops)
    found = verdicts("none", "wrong", timeout_s=20.0)
    assert (found["none"].outcome, found["wrong"].outcome) == ("passed", "failed")


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch):
    def write(cards: str, programs: str) -> None:
        path = tmp_path / "nvidia-smi"
        path.write_text(
            f'#!/bin/sh\ncase "$1" in --query-gpu*) echo "{cards}";; *) echo "{programs}";; esac\n'
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return write


def test_a_full_card_is_told_with_who_holds_it(nvidia_smi):
    nvidia_smi("0, GPU-aa, 142336, 143771", "GPU-aa, 4711, /usr/bin/python3, 142000")
    assert holding.who_holds((0,)) == "card 0 is full: held by PID 4711 (python3), 139 of 140 GiB"


class FullCard:
    """A card so full that not even a context is to be had."""

    on_gpu, gpus, sm, seed = True, (0,), 90, 7
    torch = property(lambda self: self)
    cuda = property(lambda self: self)

    def set_device(self, card: int) -> None:
        raise RuntimeError("CUDA error: out of memory")


def test_a_card_that_cannot_even_be_opened_is_no_crash(nvidia_smi):
    op = Op("matmul.fp32", lambda ctx: None, tolerance=0.0)
    nvidia_smi("0, GPU-aa, 142336, 143771", "GPU-aa, 4711, /usr/bin/python3, 142000")
    found = measure.run_op(op, FullCard(), ValueError, lambda phase: None)
    assert found == {
        "outcome": "failed",
        "reason": "card 0 is full: held by PID 4711 (python3), 139 of 140 GiB",
    }
    nvidia_smi("0, GPU-aa, 900, 143771", "")
    told = measure.run_op(op, FullCard(), ValueError, lambda phase: None)["reason"]
    assert told == "opening the card: RuntimeError: CUDA error: out of memory (seed 7)"


def test_a_card_that_nobody_fills_is_not_called_full(nvidia_smi):
    nvidia_smi("0, GPU-aa, 900, 143771", "")
    assert holding.who_holds((0,)) == ""


def test_a_card_that_we_fill_ourselves_is_no_others_doing(nvidia_smi):
    nvidia_smi("0, GPU-aa, 142336, 143771", f"GPU-aa, {os.getpid()}, python, 142000")
    assert holding.who_holds((0,)) == ""


def test_memory_without_a_program_is_said_to_be_held_by_nobody_named(nvidia_smi):
    nvidia_smi("0, GPU-aa, 142336, 143771", "")
    assert "held by what nvidia-smi does not name, 139 of 140 GiB" in holding.who_holds((0,))


@pytest.mark.parametrize("words", ["CUDA out of memory. Tried to", "CUBLAS_STATUS_ALLOC_FAILED when calling"])
def test_refused_memory_is_known_by_its_words(words):
    assert holding.is_out_of_memory(RuntimeError(words))


def test_failures_of_one_cause_are_one_entry():
    full = "card 0 is full: held by PID 4711 (python), 139 of 140 GiB"
    results = [SmokeResult(f"matmul.{n}", "failed", f"{full} (seed {n})") for n in range(15)]
    text = render(SmokeReport("cpu", (*results, SmokeResult("sdpa", "failed", "wrong"))))
    assert text.count("held by PID 4711") == 1
    assert "and 3 more" in text
