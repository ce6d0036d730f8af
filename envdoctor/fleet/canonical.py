"""A node's facts without what differs between equal nodes by nature: serial numbers, free bytes, names."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
_OWN_OF_A_GPU = frozenset(
    (
        *("uuid", "serial", "pci_bus", "memory_free_bytes", "processes", "mig_devices"),
        *("pcie_generation", "sm_clock_mhz", "memory_clock_mhz", "temperature_c"),
    )
)
# Clocks that load, power limits and settings hold down are no fault; these reasons are.
HARMFUL_THROTTLING = frozenset(
    ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
)
_SIZES = ("memory_total_bytes", "shm_bytes", "cgroup_limit_bytes")
_OWN_OF_A_HOST = frozenset(("hostname", "memory_available_bytes", "time_s"))
OWN_OF_A_PROCESS = frozenset(
    (
        *("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "MASTER_PORT", "TMPDIR", "SLURM_JOB_GPUS"),
        *(
            "SLURM_JOB_PARTITION",
            "VLLM_HOST_IP",
            "VLLM_DP_RANK",
            "VLLM_PORT",
            "NCCL_HOSTID",
            "UCX_NET_DEVICES",
        ),
    )
)
"""Variables that rightly tell another value on each node."""
_STEPS_OF_A_DOUBLING = 128  # sizes within about half a percent count as one
_ROOM = 64 << 30  # free bytes above it are alike
_WARM_C = 5  # degrees below the slowdown from which a temperature counts
_MASKS = {
    b"gpus": re.compile(
        rb'"(?:uuid|serial|pci_bus|memory_free_bytes|sm_clock_mhz|memory_clock_mhz|'
        rb'temperature_c(?=": ?[1-7]?\d\D))": ?(?:"[^"\\]*"|\d+)'
    ),
    b"host": re.compile(rb'"(?:hostname|memory_available_bytes|time_s)": ?\{[^{}]*\}'),
}
_NAMED = frozenset((b"variables", b"astray", b"environment"))
"""Sections in which paths and addresses may hold the node's own name."""
_MEETING = frozenset(("MASTER_ADDR",))
"""Addresses that all nodes must share."""
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}")
_SEED = re.compile(r" \(seed \d{1,12}\)$")
_LETTERS = frozenset(letter.encode() for letter in f"-{string.ascii_letters}{string.digits}")
_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-fA-F-]{8,60}")


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
    now, slowdown = gpu.get("temperature_c"), gpu.get("temperature_slowdown_c")
    if isinstance(now, int) and isinstance(slowdown, int) and now > slowdown - _WARM_C:
        kept["temperature_c"] = now
    if _is_slow_under_load(gpu):
        kept["pcie_generation"] = gpu["pcie_generation"]
    if isinstance(unknown := kept.pop("unknown", None), dict):
        kept["unknown"] = {k: v for k, v in unknown.items() if k not in _OWN_OF_A_GPU}
    return kept


def _is_slow_under_load(gpu: Json) -> bool:
    """True for a link below its generation on a GPU that NVML calls busy: an idle one rests lower."""
    now, most = gpu.get("pcie_generation"), gpu.get("pcie_generation_max")
    told = gpu.get("source") == "NVML" and "throttle_reasons" not in (gpu.get("unknown") or ())
    idle = "gpu_idle" in (gpu.get("throttle_reasons") or ())
    return isinstance(now, int) and isinstance(most, int) and now < most and told and not idle


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
        kept["disk_free_bytes"] = {k: _room(v) for k, v in free.items()}
    if isinstance(mounts := kept.get("mounts"), dict):
        kept["mounts"] = {k: _mount(v) for k, v in mounts.items()}
    return kept


def _room(size: Any) -> Any:
    return _rounded(min(size, _ROOM), 1) if isinstance(size, int) else size


def _mount(mount: Any) -> Any:
    """Return a mount with its sizes by their magnitude: all nodes see one, a little apart in time."""
    if not isinstance(mount, dict):
        return mount
    return {k: _room(v) if k.endswith("_bytes") else v for k, v in mount.items()}


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
    return {k: _common(k, v) for k, v in value.items() if k not in OWN_OF_A_PROCESS}


def _common(name: str, value: Any) -> Any:
    """Return a variable's value in which a GPU's or a node's own name stands for any."""
    if not isinstance(value, str):
        return value
    if name not in _MEETING and _ADDRESS.fullmatch(value):
        return "an address"
    return _UUID.sub(r"\1-…", value)


def _is_telling(name: str) -> bool:
    """True for a name that no other word of a text is likely to be: letters and digits, not short."""
    return len(name) > 3 and any(map(str.isdigit, name)) and any(map(str.isalpha, name))


def without_name(node: str, section: bytes, text: bytes) -> bytes:
    """Return a section's text in which the node's own name stands for any node's."""
    if section not in _NAMED or not _is_telling(node):
        return text
    for name in dict.fromkeys((node, node.partition(".")[0])):
        text = _without_word(text, name.encode())
    return text


def _without_word(text: bytes, word: bytes) -> bytes:
    """Return a text without a word that stands alone: no pattern, which would be compiled for each node."""
    kept, done, at = [], 0, text.find(word)
    while at >= 0:
        end = at + len(word)
        if text[at - 1 : at] not in _LETTERS and text[end : end + 1] not in _LETTERS:
            kept += [text[done:at], b"(node)"]
            done = end
        at = text.find(word, end)
    return b"".join([*kept, text[done:]]) if kept else text


def _verdicts(value: Any) -> Any:
    """Return verdicts in one order, without figures, which each node has for itself, and seeds."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return value
    told = [{k: _without_seed(v) for k, v in one.items() if k != "speed"} for one in value]
    return sorted(told, key=lambda one: str(one.get("op")))


def _without_seed(value: Any) -> Any:
    return _SEED.sub("", value) if isinstance(value, str) else value


_SECTIONS: Mapping[str, Callable[[Any], Any]] = {
    "gpus": _gpus,
    "host": _host,
    "driver": _driver,
    "variables": _variables,
    "notes": lambda _: None,
    "verdicts": _verdicts,
}
