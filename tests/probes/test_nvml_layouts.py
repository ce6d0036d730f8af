"""The layouts that the probes hand to NVML are those of NVIDIA's own binding."""

from __future__ import annotations

import ctypes

import pytest

from envdoctor.probes import nvml, nvml_gpu

pynvml = pytest.importorskip("pynvml", reason="NVIDIA's binding is not installed")


def structures() -> dict[str, type[ctypes.Structure]]:
    found = {}
    for module in (nvml, nvml_gpu):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, ctypes.Structure):
                found[name] = value
    return found


NAMES = {
    "Memory": "c_nvmlMemory_t",
    "Process": "c_nvmlProcessInfo_v2_t",
    "Pci": "nvmlPciInfo_t",
    "Fabric": "c_nvmlGpuFabricInfo_t",
}


@pytest.mark.parametrize("name", sorted(structures()))
def test_our_structures_are_as_large_as_theirs(name: str) -> None:
    theirs = getattr(pynvml, NAMES.get(name, "nothing"), None)
    assert theirs is not None, f"name the binding's structure for {name}"
    assert ctypes.sizeof(structures()[name]) == ctypes.sizeof(theirs)
