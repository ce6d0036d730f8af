"""What listed distributions ask of one another: those of the stack, what they come to, and all others."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def judged(text: str, identity: str = "REQUIREMENT-UNMET") -> list[Finding]:
    matrix = load_matrix()
    found = diagnose_facts(parse_paste(text, "", matrix.lexicon), matrix, complete=False).findings
    return [finding for finding in found if finding.id == identity]


def test_a_demand_of_what_the_stack_needs_is_a_warning_and_of_others_a_note() -> None:
    (needed,) = judged("datasets==4.0.0\nfsspec==2025.3.0\naiohttp==3.12.15\naiosignal==1.2.0\n")
    assert needed.severity is Severity.WARNING
    assert "aiohttp 3.12.15 requires aiosignal>=1.4.0" in needed.summary
    (other,) = judged("torch==2.8.0\naiohttp==3.12.15\naiosignal==1.2.0\n")
    assert other.severity is Severity.NOTE


def test_what_an_installer_refuses_is_an_error_where_the_text_tells_of_nothing_else() -> None:
    line = "llmcompressor 0.9.0 requires compressed-tensors==0.13.0, but you have compressed-tensors 0.12.2"
    (alone,) = judged(f"{line} which is incompatible.\n")
    assert alone.severity is Severity.ERROR
    (beside,) = judged(
        f"{line} which is incompatible.\n\nValueError: could not convert string to float: 'x'\n"
    )
    assert beside.severity is Severity.NOTE


def test_a_pre_release_is_older_than_its_release_but_a_vendors_build_stands_for_it() -> None:
    early = judged("transformers==5.0.0\nhuggingface-hub==1.0.0rc6\n")
    assert any("huggingface-hub>=1.3.0" in f.summary or "huggingface-hub" in f.summary for f in early)
    assert not judged("accelerate==1.2.0\ntorch==2.6.0a0+ecf3bae40a.nv25.01\n")


def test_the_extras_that_another_asks_for_are_asked_too() -> None:
    text = "Python 3.12.3\ntriton==3.7.0\ntorch==2.12.0\ncuda-toolkit==13.0.2\nnvidia-nvtx==13.1.115\n"
    assert [f for f in judged(text) if "cuda-toolkit 13.0.2 requires nvidia-nvtx" in f.summary]


def test_libraries_of_another_build_of_torch_are_its_own() -> None:
    text = "triton==3.5.1\ntorch==2.9.1{}\nnvidia-cudnn-cu12==9.5.1.17\nnvidia-cuda-nvrtc-cu12==12.6.77\n"
    assert judged(text.format(""))
    assert not judged(text.format("+cu126"))


@pytest.mark.parametrize(
    ("text", "severity", "certainty"),
    [
        ("torch==2.3.0+cu118\ntorchvision==0.18.0+cu121\n", Severity.ERROR, Certainty.CERTAIN),
        ("torch==2.3.0+cpu\ntorchvision==0.18.0+cu121\n", Severity.ERROR, Certainty.CERTAIN),
        ("torch==2.3.0+cu121\ntorchvision==0.18.0+cpu\n", Severity.WARNING, Certainty.CERTAIN),
        ("torch==2.6.0+cu126\ntorchaudio==2.6.0+cu124\n", Severity.ERROR, Certainty.CERTAIN),
        ("torch==2.13.0\ntorchaudio==2.11.0+cu128\n", Severity.ERROR, Certainty.LIKELY),
    ],
)
def test_companions_of_another_cuda_are_named(text: str, severity: Severity, certainty: Certainty) -> None:
    (found,) = judged(text, "TORCH-VARIANT-MIXED")
    assert (found.severity, found.certainty) == (severity, certainty)


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.6.0+cu126\ntorchvision==0.21.0+cu124\n",
        "torch==2.13.0\ntorchvision==0.28.0\n",
        "torch==2.8.0+rocm6.4\ntorchvision==0.23.0+cu128\n",
        "torch==2.6.0a0+ecf3bae40a.nv25.1\ntorchvision==0.20.0a0\n",
    ],
)
def test_companions_that_fit_or_are_built_elsewhere_are_left_alone(text: str) -> None:
    assert not judged(text, "TORCH-VARIANT-MIXED")


def test_no_remedy_is_offered_that_leads_to_another_error() -> None:
    text = (
        "CUDA_SETUP: WARNING! libcudart.so not found in any environmental path.\n"
        "CUDA SETUP: PyTorch settings found: CUDA_VERSION=117, Highest Compute Capability: 7.5.\n"
    )
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon)
    pins = [
        [dict(r.pins) for f in diagnose_facts(facts, matrix, complete=complete).findings for r in f.remedies]
        for complete in (False, True)
    ]
    assert {"bitsandbytes": ">=0.43"} in pins[0]
    assert {"bitsandbytes": ">=0.43"} not in pins[1]
