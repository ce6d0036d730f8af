"""A stand-in for libnvidia-ml.so.1 that answers from a recording, so that our own ctypes code runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NOT_SUPPORTED, INVALID, MISMATCH = 3, 2, 18
WORDS = {
    NOT_SUPPORTED: b"Not Supported",
    INVALID: b"Invalid Argument",
    MISMATCH: b"Driver/library version mismatch",
    15: b"GPU is lost",
}
H200 = {
    "Name": "NVIDIA H200",
    "UUID": "GPU-00000000-0000-0000-0000-000000000000",
    "Serial": "0000000000000",
    "CudaComputeCapability": [9, 0],
    "MemoryInfo": {"total": 150754820096, "free": 150109880320, "used": 644939776},
    "PciInfo": {"pciDeviceId": 590680286, "busId": "00000000:00:06.0"},
    "MigMode": [0, 0],
    "EccMode": [1, 1],
    "TotalEccErrors": 0,
    "RemappedRows": [0, 0, 0, 0],
    "PersistenceMode": 1,
    "ComputeMode": 0,
    "CurrPcieLinkGeneration": 5,
    "MaxPcieLinkGeneration": 5,
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkWidth": 16,
    "NvLinkState": [],
    "CurrentClocksThrottleReasons": 0,
    "EnforcedPowerLimit": 700000,
    "PowerManagementDefaultLimit": 700000,
    "Temperature": {0: 31},
    "TemperatureThreshold": {1: 92},
    "ClockInfo": {1: 345, 2: 2619},
    "MaxClockInfo": {1: 1980, 2: 3201},
    "VbiosVersion": "96.00.A0.00.01",
    "Processes": [],
}


class FakeNvml:
    """NVML's C functions over a list of recorded devices; `errors` maps a function to the code it answers."""

    def __init__(
        self,
        devices: list[Mapping[str, Any]],
        driver: str = "580.159.04",
        cuda: int = 13000,
        errors: Mapping[str, int] | None = None,
    ) -> None:
        self.devices, self.driver, self.cuda, self.errors = devices, driver, cuda, errors or {}
        self.closed = False

    def __call__(self, name: str) -> FakeNvml:
        """Be loaded as that library."""
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "nvmlErrorString":
            return lambda code: WORDS.get(code, b"Unknown Error")
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return lambda *arguments: self.errors.get(name) or self._answer(name, arguments)

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> int:
        special = getattr(self, "_" + name, None) if hasattr(type(self), "_" + name) else None
        if special is not None:
            return int(special(*arguments))
        device, *out = arguments
        key = name.removeprefix("nvmlDeviceGet").removesuffix("_v3")
        value = self.devices[(device.value or 1) - 1].get(key)
        if out and isinstance(out[0], int):  # which of several: a sensor, a clock
            which, *out = out
            value = value.get(which) if isinstance(value, Mapping) else None
        return self._fill(value, out)

    def _fill(self, value: Any, out: list[Any]) -> int:
        if value is None:
            return NOT_SUPPORTED
        if isinstance(value, str):
            out[0].value = value.encode()
        elif isinstance(value, Mapping):
            for field, one in _structure(value).items():
                setattr(out[0]._obj, field, one)
        else:
            for target, one in zip(out, value if isinstance(value, list) else [value], strict=True):
                target._obj.value = one
        return 0

    def _nvmlInit_v2(self) -> int:
        return 0

    def _nvmlShutdown(self) -> int:
        self.closed = True
        return 0

    def _nvmlSystemGetDriverVersion(self, buffer: Any, _: Any) -> int:
        buffer.value = self.driver.encode()
        return 0

    def _nvmlSystemGetNVMLVersion(self, buffer: Any, _: Any) -> int:
        buffer.value = f"{self.cuda // 1000}.{self.driver}".encode()
        return 0

    def _nvmlSystemGetCudaDriverVersion_v2(self, out: Any) -> int:
        out._obj.value = self.cuda
        return 0

    def _nvmlDeviceGetCount_v2(self, out: Any) -> int:
        out._obj.value = len(self.devices)
        return 0

    def _nvmlDeviceGetHandleByIndex_v2(self, index: int, out: Any) -> int:
        out._obj.value = index + 1
        return int(self.devices[index].get("lost", 0))

    def _nvmlDeviceGetNvLinkState(self, device: Any, link: int, out: Any) -> int:
        states = self.devices[device.value - 1]["NvLinkState"]
        if link >= len(states):
            return INVALID if states else NOT_SUPPORTED
        out._obj.value = states[link]
        return 0

    def _nvmlDeviceGetTotalEccErrors(self, device: Any, kind: int, counter: int, out: Any) -> int:
        return self._fill(self.devices[device.value - 1].get("TotalEccErrors"), [out])

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, device: Any, count: Any, entries: Any) -> int:
        found = self.devices[device.value - 1]["Processes"]
        for entry, (pid, used) in zip(entries, found, strict=False):
            entry.pid, entry.used_bytes = pid, used
        count._obj.value = len(found)
        return 0

    def _nvmlDeviceGetMaxMigDeviceCount(self, device: Any, out: Any) -> int:
        out._obj.value = 7
        return 0

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int, out: Any) -> int:
        parts = self.devices[device.value - 1].get("mig", [])
        if index >= len(parts):
            return 6
        self.devices.append(parts[index])
        out._obj.value = len(self.devices)
        return 0


def _structure(value: Mapping[str, Any]) -> dict[str, Any]:
    if "busId" in value:
        return {"pci_device": value["pciDeviceId"], "bus_id": value["busId"].encode()}
    if "state" in value:
        return {"state": value["state"]}
    return {"total": value["total"], "free": value["free"], "used": value["used"]}
