"""A number format is judged by what the card computes in, not by what torch emulates."""

from __future__ import annotations

import pytest
from declared import facts_of, found, seen

from envdoctor.diagnosis import diagnose_facts


@pytest.mark.parametrize("gpu", ["Tesla T4", "Tesla V100-SXM2-32GB", "RTX 2080 Ti"])
@pytest.mark.parametrize("setting", [{"bf16": "true"}, {"dtype": "bf16"}, {"pure_bf16": "true"}])
def test_bf16_before_ampere_is_emulated(gpu: str, setting: dict[str, str]) -> None:
    finding = found(facts_of(gpu, settings=setting))["DTYPE-BF16"]
    assert finding.severity.value == "warning"
    assert "emulation" in finding.cause


@pytest.mark.parametrize("gpu", ["A10", "RTX 3090", "RTX 4090", "H100", "B200"])
def test_bf16_from_ampere_on_is_fine(gpu: str) -> None:
    assert "DTYPE-BF16" not in found(facts_of(gpu, settings={"bf16": "true", "tf32": "true"}))


def test_vllm_refuses_bf16_where_others_emulate() -> None:
    finding = found(facts_of("Tesla T4", settings={"dtype": "bf16"}, framework="vllm"))["DTYPE-BF16"]
    assert finding.severity.value == "error"
    assert any("--dtype half" in remedy.text for remedy in finding.remedies)


def test_the_refusal_is_explained_by_the_card() -> None:
    line = seen("SYM-BF16-UNSUPPORTED")
    finding = found(facts_of("Tesla V100-SXM2-32GB", symptoms=(line,)))["DTYPE-BF16"]
    assert (finding.severity.value, finding.certainty.value) == ("error", "certain")
    assert "Volta" in finding.summary


def test_a_refusal_on_a_card_that_has_it_has_another_cause() -> None:
    findings = found(facts_of("A100", symptoms=(seen("SYM-BF16-SETUP"),)))
    assert "DTYPE-BF16" not in findings
    assert "DTYPE-BF16-CUDA-UNSEEN" in findings


def test_tf32_is_refused_before_ampere() -> None:
    assert found(facts_of("Tesla T4", settings={"tf32": "true"}))["DTYPE-TF32"].severity.value == "error"


@pytest.mark.parametrize(
    ("gpu", "lacks"), [("RTX 3090", True), ("A100", True), ("L4", False), ("H100", False)]
)
def test_fp8_needs_ada(gpu: str, lacks: bool) -> None:
    findings = found(facts_of(gpu, settings={"model": "Llama-3.1-70B-FP8"}))
    assert ("DTYPE-FP8" in findings) is lacks


def test_fbgemm_needs_hopper() -> None:
    assert "DTYPE-FP8-FBGEMM" in found(facts_of("L40S", settings={"quant_method": "fbgemm_fp8"}))
    assert "DTYPE-FP8-FBGEMM" not in found(facts_of("H100", settings={"quant_method": "fbgemm_fp8"}))


def test_nvfp4_before_blackwell_is_unpacked() -> None:
    finding = found(facts_of("H100", settings={"quant": "nvfp4"}))["DTYPE-FP4"]
    assert finding.severity.value == "warning"
    assert "DTYPE-FP4" not in found(facts_of("B200", settings={"quant": "nvfp4"}))


def test_vllm_of_cuda_13_leaves_volta() -> None:
    facts = facts_of("Tesla V100-SXM2-32GB", packages={"vllm": "0.24.0"})
    assert {"vllm": "<0.20"} in [dict(r.pins) for r in found(facts)["VLLM-CC-7.5"].remedies]
    assert "VLLM-CC-7.5" not in found(facts_of("Tesla T4", packages={"vllm": "0.24.0"}))


@pytest.mark.parametrize(("gpu", "told"), [("Tesla V100-SXM2-32GB", False), ("A100", True)])
def test_nobody_is_advised_a_format_that_no_card_of_theirs_has(gpu: str, told: bool) -> None:
    line = seen("SYM-LOSS-SCALE-MINIMUM")
    findings = {f.id: f for f in diagnose_facts(facts_of(gpu, symptoms=(line,))).findings}
    advice = [command for remedy in findings["LOSS-SCALE-MINIMUM"].remedies for command in remedy.commands]
    assert ("--bf16 true --fp16 false" in advice) is told
