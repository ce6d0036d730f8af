"""What other tools get wrong, asked as a user would paste it."""

from __future__ import annotations

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

MATRIX = load_matrix()
FLASH_ATTN_SYMBOL = (
    "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: "
    "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"
)


def diagnose(text: str) -> dict[str, Finding]:
    """Return the findings for a pasted text by id."""
    return {
        f.id: f for f in diagnose_facts(parse_paste(text, "paste", MATRIX.lexicon), complete=False).findings
    }


def advice(findings: dict[str, Finding]) -> str:
    """Return every command that is offered."""
    return " ".join(c for f in findings.values() for r in f.remedies for c in r.commands)


@pytest.mark.parametrize("card", ["RTX 4090", "L40S", "RTX 3090", "A10", "Jetson AGX Orin"])
def test_cards_without_an_entry_of_their_own_are_not_accused(card: str) -> None:
    assert diagnose(f"GPU: {card}\ntorch==2.13.0\nNVIDIA driver: 580.95.05") == {}


@pytest.mark.parametrize("card", ["GTX 1080 Ti", "Tesla P40", "Tesla V100-SXM2-32GB", "TITAN V"])
def test_cuda_13_is_never_recommended_to_pascal_and_volta(card: str) -> None:
    findings = diagnose(f"GPU: {card}\ntorch==2.13.0\nNVIDIA driver: 580.95.05")
    assert "TORCH-ARCH" in findings
    assert "cu13" not in advice(findings)


def test_driver_610_is_a_driver() -> None:
    banner = (
        "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n"
        "torch==2.15.0\nGPU: NVIDIA B200"
    )
    assert [f for f in diagnose(banner).values() if f.severity.value != "note"] == []


def test_driver_535_is_not_held_to_cuda_12_1() -> None:
    findings = diagnose("GPU: A100\ntorch==2.10.0\nNVIDIA driver: 535.274.02")
    assert [f for f in findings.values() if f.severity.value != "note"] == []


def test_nvcc_is_not_demanded_of_those_who_install_wheels() -> None:
    text = "GPU: RTX 4090\ntorch==2.10.0\nNVIDIA driver: 580.95.05\nnvcc: not found"
    assert diagnose(text) == {}


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("CUDA error: no kernel image is available for execution on the device", "NO-KERNEL-IMAGE-UNTOLD"),
        ("libcudart.so.11.0: cannot open shared object file", "LIB-CUDART-11"),
        ("libcublas.so.12: cannot open shared object file", "LIB-CUBLAS"),
        ("CUDA error: the provided PTX was compiled with an unsupported toolchain.", "DRIVER-PTX-TOOLCHAIN"),
        ("NCCL version mismatch between ranks", "NCCL-VERSION-MISMATCH"),
        ("AssertionError: Torch not compiled with CUDA enabled", "TORCH-CPU-BUILD"),
        (FLASH_ATTN_SYMBOL, "ABI-FLASH-ATTN"),
    ],
)  # fmt: skip
def test_the_classic_errors_are_recognised_without_any_version(line: str, finding: str) -> None:
    assert finding in diagnose(line)


@pytest.mark.parametrize(
    ("pair", "finding"),
    [
        ("vllm==0.11.0\ntransformers==5.2.0", "PAIR-VLLM-TRANSFORMERS-5"),
        ("pandas==1.5.3\nnumpy==2.2.6", "NUMPY2-PANDAS"),
        ("faiss-cpu==1.8.0\nnumpy==2.2.6", "NUMPY2-FAISS"),
        ("opencv-python==4.9.0.80\nnumpy==2.2.6", "NUMPY2-OPENCV"),
    ],
)
def test_what_metadata_allows_and_code_does_not_is_told_without_an_error_line(
    pair: str, finding: str
) -> None:
    assert diagnose(pair)[finding].certainty == "certain"


def test_what_was_built_for_numpy_2_goes_with_numpy_1() -> None:
    assert diagnose("pandas==2.2.2\nnumpy==1.26.4\nfaiss-cpu==1.9.0") == {}


def test_only_wishes_that_exclude_one_another_are_told_as_a_clash() -> None:
    clash = diagnose(
        "ERROR: Cannot install torch==2.1.1 and vllm because these package versions have conflicting"
        " dependencies.\n\n"
        "The conflict is caused by:\n    The user requested torch==2.1.1\n"
        "    accelerate 0.34.2 depends on torch>=1.10.0\n    vllm 0.5.4 depends on torch==2.4.0\n"
    )["PIP-CLASH"]
    assert "you want ==2.1.1, vllm 0.5.4 wants ==2.4.0" in clash.summary
    assert [remedy.pins for remedy in clash.remedies if remedy.pins] == [{"torch": "==2.4.0"}]


def test_many_causes_of_one_line_are_not_likely_each() -> None:
    line = "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.2.6 as it may crash."
    assert list(diagnose(f"numpy==2.2.6\nvllm==0.15.0\nImportError: \n{line}")) == ["NUMPY2-ABI"]


def test_a_range_that_is_cut_off_is_no_pin() -> None:
    (finding,) = diagnose('    check_version("transformers>=4.41.2,<=').values()
    assert finding.remedies[0].pins == {}
    assert "cut off" in finding.summary


def test_another_build_of_a_torch_that_is_not_told_is_no_torch_to_come_in() -> None:
    text = (
        "# ImportError: DLL load failed while importing _fused: The specified procedure could not be found."
    )
    diagnosis = diagnose_facts(parse_paste(text, "paste", MATRIX.lexicon))
    assert "DLL-LOAD" in {finding.id for finding in diagnosis.findings}
    assert diagnosis.plan is None or diagnosis.plan.moves == ()
