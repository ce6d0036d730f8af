"""Shared libraries: two copies of one, an older one in front, a pair that does not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared import errors, facts_of, found, pins, seen

from envdoctor.facts import NativeLibrary


def test_one_library_for_two_cudas_is_overwritten() -> None:
    packages = {"torch": "2.4.0", "nvidia-nccl-cu11": "2.14.3", "nvidia-nccl-cu12": "2.20.5"}
    finding = found(facts_of(packages=packages))["CUDA-PACKAGES-MIXED"]
    assert "pip uninstall -y nvidia-nccl-cu11" in finding.remedies[0].commands
    assert finding.severity.value == "warning"


def test_packages_of_one_cuda_are_no_finding() -> None:
    packages = {"torch": "2.8.0", "nvidia-nccl-cu12": "2.27.3", "nvidia-cudnn-cu12": "9.10.2.21"}
    assert found(facts_of(packages=packages)) == {}


def test_a_missing_nccl_symbol_without_a_list_is_likely_a_mix() -> None:
    line = seen("SYM-NCCL-SYMBOL", "undefined symbol: ncclCommRegister", symbol="ncclCommRegister")
    assert found(facts_of(symptoms=(line,)))["NCCL-COPY-OLD"].certainty.value == "likely"


def test_nvjitlink_follows_cusparse() -> None:
    line = seen("SYM-NVJITLINK", symbol="__nvJitLinkComplete_12_4", major="12", minor="4")
    assert pins(found(facts_of(symptoms=(line,)))["NVJITLINK-OLD"])[0] == {
        "nvidia-nvjitlink-cu12": "==12.4.*"
    }


def test_an_older_cudnn_on_the_path_is_named_with_its_place() -> None:
    copy = NativeLibrary("cudnn", "/opt/old/libcudnn.so.9", "LD_LIBRARY_PATH", version="9.1.0", wins=True)
    facts = replace(facts_of(packages={"torch": "2.8.0"}), libraries=(copy,))
    assert "/opt/old/libcudnn.so.9" in found(facts)["CUDNN-OLD-COPY"].cause


def test_torchs_own_cudnn_is_no_finding() -> None:
    copy = NativeLibrary("cudnn", "/venv/nvidia/cudnn/lib/libcudnn.so.9", "wheel", version="9.1.0", wins=True)
    facts = replace(facts_of(packages={"torch": "2.8.0"}), libraries=(copy,))
    assert "CUDNN-OLD-COPY" not in found(facts)


@pytest.mark.parametrize(
    ("package", "version", "torch", "pin"),
    [
        ("torchvision", "0.18.1", "2.4.1", {"torchvision": "==0.19.1"}),
        ("torchaudio", "2.1.0", "2.5.1", {"torchaudio": "==2.5.1"}),
        ("vllm", "0.6.3", "2.5.1", {"vllm": ">=0.6.4,<=0.7.3"}),
        ("xformers", "0.0.27.post2", "2.3.1", {"xformers": "==0.0.27"}),
    ],
)
def test_a_pair_is_mended_from_either_side(
    package: str, version: str, torch: str, pin: dict[str, str]
) -> None:
    finding = found(facts_of(packages={package: version, "torch": torch}))[f"{package.upper()}-TORCH"]
    assert finding.severity.value == "error"
    assert pins(finding)[0] == pin
    assert "torch" in pins(finding)[1]


@pytest.mark.parametrize(
    "packages",
    [
        {"torch": "2.8.0", "torchvision": "0.23.0", "torchaudio": "2.8.0", "xformers": "0.0.32.post2"},
        {"torch": "2.14.0", "torchvision": "0.29.0", "vllm": "0.33.0"},
        {"torch": "2.15.0", "torchvision": "0.29.2"},
        {"torch": "2.11.0", "xformers": "0.0.35"},
        {"torch": "2.4.0+cu121", "torchvision": "0.19.0+cu121"},
        {"torch": "2.10.0.dev20251101", "torchvision": "0.25.0.dev20251101"},
    ],
)
def test_pairs_that_fit_are_no_finding(packages: dict[str, str]) -> None:
    assert errors(facts_of(packages=packages)) == []


def test_numpy_2_beside_an_old_torch() -> None:
    assert {"numpy": "<2"} in pins(
        found(facts_of(packages={"numpy": "2.1.0", "torch": "2.1.2"}))["NUMPY2-TORCH"]
    )
    assert "NUMPY2-TORCH" not in found(facts_of(packages={"numpy": "2.1.0", "torch": "2.4.0"}))


@pytest.mark.parametrize(
    ("lib", "finding"),
    [
        ("libcudart.so.13", "LIB-CUDART-13"),
        ("libcudnn_ops_infer.so.8", "LIB-CUDNN-8"),
        ("libcuda.so.1", "LIB-CUDA-DRIVER"),
    ],
)
def test_a_missing_library_is_named_by_what_brings_it(lib: str, finding: str) -> None:
    line = seen("SYM-SHARED-OBJECT", f"{lib}: cannot open shared object file", lib=lib)
    assert finding in found(facts_of(symptoms=(line,)))


@pytest.mark.parametrize(
    ("symptom", "captured", "finding"),
    [
        ("SYM-NVCC-ARCH", {"arch": "120"}, "NVCC-ARCH-NEW-120"),
        ("SYM-NVCC-ARCH", {"arch": "61"}, "NVCC-ARCH-OLD"),
        ("SYM-GCC-NEW", {"gcc": "11"}, "GCC-TOO-NEW"),
        ("SYM-PYTHON-H", {}, "PYTHON-HEADERS"),
        ("SYM-UNDEFINED-SYMBOL", {"symbol": "cublasLtGetStatusString"}, "LIB-CUDA-SYMBOL"),
        ("SYM-UNDEFINED-SYMBOL", {"symbol": "iJIT_NotifyEvent"}, "LIB-MKL-ITT"),
        ("SYM-GLIBC", {"needed": "2.28", "lib": "torch/lib/libtorch_cpu.so"}, "GLIBC-TORCH-SEEN"),
        ("SYM-NOT-IMPLEMENTED-FOR", {"op": "addmm_impl_cpu_", "dtype": "Half"}, "OP-HALF-ON-CPU"),
    ],
)
def test_what_compilers_and_loaders_say_is_told_apart(
    symptom: str, captured: dict[str, str], finding: str
) -> None:
    assert finding in found(facts_of(symptoms=(seen(symptom, **captured),)))
