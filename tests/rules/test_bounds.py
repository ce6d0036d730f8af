"""A bound that an error's own sentence tells of a package becomes the pin of its first remedy."""

from __future__ import annotations

import re

import pytest
from packaging.specifiers import SpecifierSet

from envdoctor.findings import Severity
from tests.rules.test_moods import diagnosed as judged

TOLD = [
    (
        "ImportError: Qwen2.5-VL needs transformers newer than 4.49.0, you have 4.45.2",
        "transformers",
        ">=4.49.0",
    ),
    ("RuntimeError: Unsloth: trl 0.24.0 is too new; please downgrade to trl<=0.19", "trl", "<=0.19"),
    ("ImportError: my_ops was built with torch 2.9.0, but torch 2.10.0 is installed", "torch", "==2.9.*"),
    (
        "TypeError: `keep` was introduced in transformers v4.48. Your version 4.46.3 lacks it",
        "transformers",
        ">=4.48",
    ),
    ("ValueError: DeepSpeed version must be >= 0.14.0 for ZeRO++ but found 0.12.6", "deepspeed", ">=0.14.0"),
    ("AssertionError: numpy version must be less than 2.0", "numpy", "<2.0"),
    ("AssertionError: triton>=2.1.0 required, got 2.0.0", "triton", ">=2.1.0"),
    (
        "ImportError: it cannot be used: Flash Attention 2.1.0 or higher is required, found 2.0.4",
        "flash-attn",
        ">=2.1.0",
    ),
    ("TypeError: gradio 4.0 removed `enable_queue`; works with gradio<4", "gradio", "<4"),
    (
        "ImportError: this backend was made for use with peft, 0.15 or newer; install peft 0.15 or newer",
        "peft",
        ">=0.15",
    ),
    ("SyntaxError: match statements need Python 3.10 or newer", "python", ">=3.10"),
    ("RuntimeError: the call was removed in vLLM v0.9.0", "vllm", "<0.9.0"),
    (
        "ImportError: the minimum required version of bitsandbytes is 0.43.1, found 0.41.3",
        "bitsandbytes",
        ">=0.43.1",
    ),
    ("AssertionError: Your version of peft is 0.5.0, but at least 0.6 is needed.", "peft", ">=0.6"),
    ("RuntimeError: Triton version 3.0.0 is incompatible. Expected 3.1.0", "triton", "==3.1.*"),
    ("ImportError: trl.GRPOTrainer is absent; trl must be at least version 0.14.0", "trl", ">=0.14.0"),
    ("RuntimeError: Numpy 2.x is not supported by this release, use numpy 1.26", "numpy", "==1.26.*"),
]


@pytest.mark.parametrize(("line", "package", "bound"), TOLD)
def test_what_a_message_asks_of_a_package_is_pinned(line: str, package: str, bound: str) -> None:
    pins = judged(line).findings[0].remedies[0].pins
    first = re.search(r"[=>]=([\d.a-z]+)", pins[package])
    assert first
    assert SpecifierSet(bound).contains(first[1].strip("."))
    assert pins[package].startswith("==") or [b for b in bound.split(",") if "<" in b] == [
        b for b in pins[package].split(",") if "<" in b
    ]


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: num_workers must be at least 1.5 times the count of versions, torch says",
        "RuntimeError: Expected 3.14 but got 2.71 in torch's loss",
        "ValueError: max_seq_len must be at least 4.5 for this",
        "RuntimeError: Expected torch version >=2.1 but found 2.4.0",
        "AttributeError: `frobnicate` is deprecated and was removed in v0.9.0",
        "NotImplementedError: it was removed in numpy 99.0",
        "OSError: [Errno 28] No space left on device; please use at least 4.5 GB",
    ],
)
def test_a_bound_of_no_package_and_one_that_is_kept_say_nothing(line: str) -> None:
    assert "BOUND-TOLD" not in {finding.id for finding in judged(line).findings}


def test_no_installer_is_asked_for_cuda() -> None:
    (first, *_) = judged("RuntimeError: DeepGEMM requires CUDA >= 12.8, found CUDA 12.4").findings
    assert first.remedies
    assert not any(way.pins or way.commands for way in first.remedies)


@pytest.mark.parametrize(
    "text",
    [
        "INFO: a\nERROR 11-20 10:33:12 [core.py:123] File types should be identical.\nINFO: b\nINFO: c",
        "[2025-11-20 10:33:12] ERROR [frob.engine] bitmask should be on CPU.",
        "ERROR:frob:autograd did not finish. Did you make sure to call `before_forward` before it?",
        "E1120 10:33:12.345678 140 core.cpp:77] The schema should be a string.",
        "BadParameter: Either --body, --body-file or --attach is required.",
        "2025-11-20 10:33:12,345 - frob.core - ERROR - tensor should have shape [total, heads, dim]",
    ],
)
def test_a_line_that_a_program_prints_as_an_error_is_never_green(text: str) -> None:
    found = judged(text)
    assert found.exit_code == 1
    assert any(one.severity is Severity.ERROR for one in found.findings)


def test_an_error_line_that_the_run_outlived_is_none() -> None:
    log = "ERROR 11-20 10:33:12 [core.py:123] File types should be identical.\n{'train_runtime': 12.5}"
    assert judged(log).exit_code != 1
