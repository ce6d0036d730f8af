"""What is said of CUDA is not said to ROCm, Ascend, Intel's or Apple's accelerators."""

from __future__ import annotations

import pytest
from declared import pasted

SAID = {
    "rocm": "PyTorch version: 2.6.0\nROCM used to build PyTorch: 6.2.41133\nGPU: AMD Instinct MI250X",
    "mps": "torch 2.6.0 on an Apple M2 Max, macOS 15",
    "ascend": "torch 2.1.0, torch_npu 2.1.0.post8, Ascend 910B",
    "xpu": "torch 2.1.0.post0+cxx11.abi, device xpu:0 Intel(R) Arc(TM) A770",
}
BITSANDBYTES = (
    "CUDA Setup failed despite GPU being available. libbitsandbytes_cuda124.so: cannot open shared object"
)
CPU = "AssertionError: Torch not compiled with CUDA enabled"


@pytest.mark.parametrize(
    "error", [BITSANDBYTES, CPU, "RuntimeError: no kernel image is available for execution"]
)
@pytest.mark.parametrize("backend", SAID)
def test_nothing_of_cuda_is_advised_elsewhere(backend: str, error: str) -> None:
    found = pasted(f"{SAID[backend]}\nbitsandbytes 0.43.1\n{error}\n")
    assert "BACKEND-NOT-JUDGED" in found
    advice = " ".join(c for f in found.values() for r in f.remedies for c in r.commands).lower()
    assert "cuda" not in advice
    assert "nvidia" not in advice
    assert {"UNEXPLAINED-ERROR", "RAISED-BY-LIBRARY", "MAC-ASKS-GPU"} & set(found)


def test_what_is_free_of_the_accelerator_is_judged_there_too() -> None:
    line = "ImportError: cannot import name 'cached_download' from 'huggingface_hub'"
    found = pasted(f"{SAID['rocm']}\nhuggingface-hub 0.30.0\n{line}\n")
    assert any("cached_download" in f.summary for f in found.values())


def test_an_nvidia_machine_is_not_taken_for_another() -> None:
    assert "BACKEND-NOT-JUDGED" not in pasted("GPU: NVIDIA A100, torch 2.6.0+cu124, CPU: AMD EPYC 7742")


def test_a_wheel_for_cuda_is_no_measure_of_what_ascend_takes() -> None:
    found = pasted("vllm==0.18.0\ntorch==2.9.0\nvllm-ascend==0.18.0rc1\n")
    assert "VLLM-TORCH" not in found
    assert "BACKEND-NOT-JUDGED" in found
    assert "VLLM-TORCH" in pasted("vllm==0.18.0\ntorch==2.9.0\n")


@pytest.mark.parametrize("backend", SAID)
def test_a_companion_belongs_to_its_torch_on_every_accelerator(backend: str) -> None:
    found = pasted(f"{SAID[backend]}\nRuntimeError: operator torchvision::nms does not exist\n")
    assert "TORCHVISION-TORCH" in found
