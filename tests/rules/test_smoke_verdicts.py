"""Verdicts of smoke kernels are facts: they raise findings, and they can contradict the matrix."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import ComputeCapability, Facts, Gpu, Observed, Verdict
from envdoctor.findings import Finding, Severity


def judged(capability: str, *verdicts: tuple[str, str, str | None]) -> dict[str, Finding]:
    gpu = Gpu(0, "NVML", "a card", compute_capability=ComputeCapability.parse(capability))
    known = Facts(
        gpus=Observed((gpu,), "NVML"),
        verdicts=tuple(Verdict(op, outcome, "smoke", reason) for op, outcome, reason in verdicts),
    )
    return {f.id: f for f in diagnose_facts(known, select=("SMOKE-FAILED", "SMOKE-CONTRADICTS")).findings}


def test_kernels_that_pass_are_no_finding() -> None:
    assert judged("9.0", ("matmul.bf16", "passed", None), ("bnb.nf4", "passed", None)) == {}


def test_a_kernel_says_no_where_the_matrix_says_yes() -> None:
    found = judged("9.0", ("matmul.fp16", "failed", "CUDA error: no kernel image is available"))[
        "SMOKE-FAILED"
    ]
    assert found.severity is Severity.ERROR
    assert "no code for this card's architecture" in found.summary
    assert found.rows == ("SMOKE-CAUSE-ARCH",)


def test_a_crash_without_a_known_reason_is_still_an_error() -> None:
    found = judged("8.6", ("flash_attn.2", "crashed", "SIGSEGV"))["SMOKE-FAILED"]
    assert "flash_attn.2" in found.summary
    assert found.remedies[0].commands == ("envdoctor smoke --select flash_attn.2",)


def test_what_the_card_cannot_do_is_only_noted() -> None:
    assert judged("8.0", ("matmul.fp8", "failed", "not supported"))["SMOKE-FAILED"].severity is Severity.NOTE


def test_a_passing_kernel_contradicts_the_row_that_denies_it() -> None:
    assert judged("8.6", ("matmul.fp8", "passed", None))["SMOKE-CONTRADICTS"].rows == ("CLAIM-FP8",)


def test_emulated_bf16_contradicts_nothing() -> None:
    assert judged("7.5", ("matmul.bf16", "passed", None)) == {}
