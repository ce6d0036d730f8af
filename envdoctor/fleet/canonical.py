"""A node's facts without what differs between equal nodes by nature: serial numbers, free bytes, names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
_OWN_OF_A_GPU = frozenset(
    ("uuid", "serial", "pci_bus", "memory_free_bytes", "processes", "pcie_generation", "mig_devices")
)
# Clocks that load, power limits and settings hold down are no fault; these reasons are.
HARMFUL_THROTTLING = frozenset(
    ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
)
_SIZES = ("memory_total_bytes", "shm_bytes", "cgroup_limit_bytes")
_OWN_OF_A_HOST = frozenset(("hostname", "memory_available_bytes"))
_OWN_OF_A_PROCESS = frozenset(("RANK", "LOCAL_RANK", "MASTER_PORT", "TMPDIR", "SLURM_JOB_GPUS"))
_STEPS_OF_A_DOUBLING = 32  # sizes within about 2 percent count as one
_MASKS = {
    b"gpus": re.compile(rb'"(?:uuid|serial|pci_bus|memory_free_bytes)": ?(?:"[^"\\]*"|\d+)'),
    b"host": re.compile(rb'"(?:hostname|memory_available_bytes)": ?\{[^{}]*\}'),
}


def mask(section: bytes, text: bytes) -> bytes:
    """Return a section's JSON text without some of what `canonical` drops, much faster than parsing it."""
    pattern = _MASKS.get(section)
    return text if pattern is None else pattern.sub(b"", text)


def canonical(section: str, value: Any) -> Any:
    """Return a section of facts JSON with only what equal nodes share; None where nothing remains."""
    reader = _SECTIONS.get(section)
    return value if reader is None else reader(value)


def _gpus(value: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("value"), list):
        return value
    return {**value, "value": [_gpu(gpu) for gpu in value["value"]]}


def _gpu(gpu: Any) -> Any:
    if not isinstance(gpu, dict):
        return gpu
    kept = {k: v for k, v in gpu.items() if k not in _OWN_OF_A_GPU}
    if isinstance(reasons := kept.pop("throttle_reasons", None), list):
        kept["throttle_reasons"] = [r for r in reasons if r in HARMFUL_THROTTLING]
    if isinstance(gpu.get("mig_devices"), list):
        kept["mig_devices"] = [re.sub(r" \(UUID:[^)]{0,200}\)", "", str(one)) for one in gpu["mig_devices"]]
    if isinstance(unknown := kept.pop("unknown", None), dict):
        kept["unknown"] = {k: v for k, v in unknown.items() if k not in _OWN_OF_A_GPU}
    return kept


def _host(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {k: v for k, v in value.items() if k not in _OWN_OF_A_HOST}


def distinguishing(section: str, common: Any) -> Any:
    """Return what decides whether two nodes' common parts count as one: sizes only by their magnitude."""
    if section != "host" or not isinstance(common, dict):
        return common
    kept = dict(common)
    for name in _SIZES:
        size = kept.get(name)
        if isinstance(size, dict) and isinstance(size.get("value"), int):
            kept[name] = _rounded(size["value"], _STEPS_OF_A_DOUBLING)
    if isinstance(free := kept.get("disk_free_bytes"), dict):
        kept["disk_free_bytes"] = {k: _rounded(v, 1) if isinstance(v, int) else v for k, v in free.items()}
    return kept


def _rounded(size: int, steps: int) -> int:
    """Return the nearest of `steps` geometric steps a doubling."""
    return 0 if size <= 0 else math.floor(2 ** (math.floor(math.log2(size) * steps + 0.5) / steps))


def _driver(value: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("xids"), list):
        return value
    numbers = sorted({x["number"] for x in value["xids"] if isinstance(x, dict) and "number" in x})
    return {**value, "xids": [{"number": n, "pci_bus": "", "text": ""} for n in numbers]}


def _variables(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {k: v for k, v in value.items() if k not in _OWN_OF_A_PROCESS}


_SECTIONS: Mapping[str, Callable[[Any], Any]] = {
    "gpus": _gpus,
    "host": _host,
    "driver": _driver,
    "variables": _variables,
    "notes": lambda _: None,
}
