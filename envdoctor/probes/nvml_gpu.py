"""One GPU as NVML describes it, field by field, in the words of nvidia-smi."""

from __future__ import annotations

from .machine import Json, Machine, without_empty
from .nvml import MAX_BYTES, Memory, Nvml, NvmlError, Pci, printable
from .typed import Any, Callable, Dict, List, Tuple

SOURCE = "NVML"
SWITCH = {0: "Disabled", 1: "Enabled"}
COMPUTE_MODES = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
THROTTLE_REASONS = (
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
)
UNCORRECTED, VOLATILE = 1, 0
CORE, SLOWDOWN = 0, 1
"""NVML_TEMPERATURE_GPU, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN."""
SM, MEMORY = 1, 2
"""NVML_CLOCK_SM, NVML_CLOCK_MEM."""
MAX_MILLIWATTS, MAX_CELSIUS, MAX_MEGAHERTZ = 20_000_000, 250, 100_000
MAX_NVLINKS, MAX_MIG, MAX_GENERATION, MAX_WIDTH = 18, 64, 16, 64


def read_gpu(nvml: Nvml, machine: Machine, index: int) -> Json:
    """Return what NVML tells of one GPU; a field it refuses is under `unknown` with its words."""
    gpu: Json = {"index": index, "source": SOURCE}
    refused: Dict[str, str] = {}
    try:
        device = nvml.handle("nvmlDeviceGetHandleByIndex_v2", index)
    except NvmlError as error:
        return dict(gpu, unknown={"name": str(error)})
    for name, read in FIELDS:
        try:
            gpu.update(read(nvml, device))
        except NvmlError as error:
            refused[name] = str(error)
    _add_processes(nvml, machine, device, gpu, refused)
    return without_empty(dict(gpu, unknown=refused))


def _capability(nvml: Nvml, device: Any) -> Json:
    name = "nvmlDeviceGetCudaComputeCapability"
    major, minor = nvml.numbers(2, name, device)
    capability = nvml.bounded(major, 99, "to " + name), nvml.bounded(minor, 9, "to " + name)
    return {"compute_capability": "%d.%d" % capability}


def _memory(nvml: Nvml, device: Any) -> Json:
    name = "nvmlDeviceGetMemoryInfo"
    memory = nvml.fill(Memory, name, device)
    total = nvml.bounded(int(memory.total), MAX_BYTES, "to " + name)
    free = nvml.bounded(int(memory.free), total, "to " + name)
    return {"memory_total_bytes": total, "memory_free_bytes": free}


def _pci(nvml: Nvml, device: Any) -> Json:
    pci = nvml.fill(Pci, "nvmlDeviceGetPciInfo_v3", device)
    ids = "%04x:%04x" % (pci.pci_device & 0xFFFF, pci.pci_device >> 16)
    return {"pci_id": ids, "pci_bus": printable(pci.bus_id)}


def _mig(nvml: Nvml, device: Any) -> Json:
    current = nvml.numbers(2, "nvmlDeviceGetMigMode", device)[0]
    mode = SWITCH.get(current, str(current))
    return {"mig": mode, "mig_devices": read_mig_devices(nvml, device) if current else []}


def read_mig_devices(nvml: Nvml, device: Any) -> List[str]:
    """Return a GPU's MIG devices as `MIG 1g.5gb (UUID: MIG-…)`."""
    found = []
    for index in range(nvml.number("nvmlDeviceGetMaxMigDeviceCount", device, top=MAX_MIG)):
        try:
            part = nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", device, index)
            name, uuid = nvml.text("nvmlDeviceGetName", part), nvml.text("nvmlDeviceGetUUID", part)
        except NvmlError:
            continue
        found.append("%s (UUID: %s)" % (name[name.find("MIG") :] if "MIG" in name else name, uuid))
    return found


def _ecc_errors(nvml: Nvml, device: Any) -> Json:
    name = "nvmlDeviceGetTotalEccErrors"
    count = nvml.long_number(name, device, UNCORRECTED, VOLATILE)
    return {"ecc_uncorrected": nvml.bounded(count, MAX_BYTES, "to " + name)}


def _remapped(nvml: Nvml, device: Any) -> Json:
    _, _, pending, failed = nvml.numbers(4, "nvmlDeviceGetRemappedRows", device)
    return {"remapped_rows_pending": bool(pending), "remapped_rows_failed": bool(failed)}


def _compute_mode(nvml: Nvml, device: Any) -> Json:
    mode = nvml.number("nvmlDeviceGetComputeMode", device)
    return {"compute_mode": COMPUTE_MODES.get(mode, str(mode))}


def _throttle(nvml: Nvml, device: Any) -> Json:
    mask = nvml.long_number("nvmlDeviceGetCurrentClocksThrottleReasons", device)
    return {"throttle_reasons": [name for bit, name in THROTTLE_REASONS if mask & bit]}


def _nvlinks(nvml: Nvml, device: Any) -> Json:
    states = [nvml.number("nvmlDeviceGetNvLinkState", device, 0)]
    for link in range(1, MAX_NVLINKS):
        try:
            states.append(nvml.number("nvmlDeviceGetNvLinkState", device, link))
        except NvmlError:
            break
    return {"nvlinks_up": sum(1 for state in states if state), "nvlinks_total": len(states)}


def _text(field: str, function: str) -> Tuple[str, Callable[[Nvml, Any], Json]]:
    return field, lambda nvml, device: {field: nvml.text(function, device)}


def _number(field: str, function: str, top: int, *which: int) -> Tuple[str, Callable[[Nvml, Any], Json]]:
    return field, lambda nvml, device: {field: nvml.number(function, device, *which, top=top)}


FIELDS: Tuple[Tuple[str, Callable[[Nvml, Any], Json]], ...] = (
    _text("name", "nvmlDeviceGetName"),
    _text("uuid", "nvmlDeviceGetUUID"),
    ("compute_capability", _capability),
    ("memory_total_bytes", _memory),
    ("pci_bus", _pci),
    _text("serial", "nvmlDeviceGetSerial"),
    ("mig", _mig),
    ("ecc", lambda nvml, device: {"ecc": SWITCH.get(nvml.numbers(2, "nvmlDeviceGetEccMode", device)[0])}),
    ("ecc_uncorrected", _ecc_errors),
    ("remapped_rows_pending", _remapped),
    (
        "persistence",
        lambda nvml, device: {"persistence": bool(nvml.number("nvmlDeviceGetPersistenceMode", device))},
    ),
    ("compute_mode", _compute_mode),
    _number("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", MAX_GENERATION),
    _number("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", MAX_GENERATION),
    _number("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", MAX_WIDTH),
    _number("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", MAX_WIDTH),
    ("nvlinks_total", _nvlinks),
    ("throttle_reasons", _throttle),
    _number("power_limit_mw", "nvmlDeviceGetEnforcedPowerLimit", MAX_MILLIWATTS),
    _number("power_limit_default_mw", "nvmlDeviceGetPowerManagementDefaultLimit", MAX_MILLIWATTS),
    _number("temperature_c", "nvmlDeviceGetTemperature", MAX_CELSIUS, CORE),
    _number("temperature_slowdown_c", "nvmlDeviceGetTemperatureThreshold", MAX_CELSIUS, SLOWDOWN),
    _number("sm_clock_mhz", "nvmlDeviceGetClockInfo", MAX_MEGAHERTZ, SM),
    _number("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", MAX_MEGAHERTZ, SM),
    _number("memory_clock_mhz", "nvmlDeviceGetClockInfo", MAX_MEGAHERTZ, MEMORY),
    _number("memory_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", MAX_MEGAHERTZ, MEMORY),
    _text("vbios", "nvmlDeviceGetVbiosVersion"),
)


def _add_processes(nvml: Nvml, machine: Machine, device: Any, gpu: Json, refused: Dict[str, str]) -> None:
    try:
        processes = nvml.processes(device)
    except NvmlError as error:
        refused["processes"] = str(error)
        return
    gpu["processes"] = [_process(machine, one.pid, one.used_bytes) for one in processes]


def _process(machine: Machine, pid: int, used_bytes: int) -> Json:
    """Return a process by number, used bytes and the short name the kernel keeps (no arguments)."""
    name = (machine.text("/proc/%d/comm" % pid) or "").strip()
    used = int(used_bytes) if used_bytes <= MAX_BYTES else None
    return without_empty({"pid": int(pid), "used_bytes": used, "name": name})
