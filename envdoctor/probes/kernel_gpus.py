"""GPUs as the kernel lists them in /sys and /proc: the last resort, without name of the newest or memory."""

from __future__ import annotations

import re

from .machine import Json, Machine, fact, without_empty
from .typed import Dict, List, Optional

PCI = "/sys/bus/pci/devices"
PROC = "/proc/driver/nvidia/gpus"
TREE = "/proc/device-tree/"
HIDDEN = ("/dev/nvidiactl", "/dev/dxg")
FACTS = ("gpus",)
NVIDIA, DISPLAY = "0x10de", ("0x0300", "0x0302")


def read(machine: Machine) -> Json:
    """Return the GPUs that the kernel lists; merged in where NVML and nvidia-smi told none."""
    gpus = read_gpus(machine)
    return {"gpus": fact(gpus, gpus[0]["source"] if gpus else PCI, "the kernel does not list the GPUs here")}


def read_gpus(machine: Machine) -> Optional[List[Json]]:
    """Return NVIDIA's display devices, [] when there are none, None when the kernel does not tell."""
    jetson = _jetson(machine)
    if jetson:
        return [jetson]
    buses = [bus for bus in machine.names(PCI) if _is_gpu(machine, bus)]
    if not buses and any(machine.exists(path) for path in HIDDEN):
        return None
    return [_gpu(machine, index, bus) for index, bus in enumerate(buses)]


def _jetson(machine: Machine) -> Optional[Json]:
    """Return the GPU built into a Jetson, which no bus lists, under the name of its board."""
    if "nvidia,tegra" not in (machine.text(TREE + "compatible") or ""):
        return None
    name = (machine.text(TREE + "model") or "NVIDIA Jetson").strip("\0\n ")
    return {"index": 0, "source": TREE + "model", "name": name}


def _is_gpu(machine: Machine, bus: str) -> bool:
    folder = "%s/%s/" % (PCI, bus)
    if (machine.text(folder + "vendor") or "").strip() != NVIDIA:
        return False
    return (machine.text(folder + "class") or "").startswith(DISPLAY)


def _gpu(machine: Machine, index: int, bus: str) -> Json:
    device = (machine.text("%s/%s/device" % (PCI, bus)) or "").strip()
    told = parse_information(machine.text("%s/%s/information" % (PROC, bus)) or "")
    return without_empty(
        {
            "index": index,
            "source": PCI,
            "name": told.get("Model"),
            "uuid": told.get("GPU UUID"),
            "pci_id": "10de:" + device[2:] if device.startswith("0x") else None,
            "pci_bus": bus,
            "unknown": {"memory_total_bytes": "the kernel does not tell a GPU's memory"},
        }
    )


def parse_information(text: str) -> Dict[str, str]:
    """Read `/proc/driver/nvidia/gpus/*/information`; without the fields that the driver left as `?`."""
    pairs = re.findall(r"^([^:\n]+):(.*)$", text, re.MULTILINE)
    told = {key.strip(): value.strip(" \t") for key, value in pairs}
    return {key: value for key, value in told.items() if value and "?" not in value and value != "Unknown"}
