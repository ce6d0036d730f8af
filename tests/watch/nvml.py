"""NVML as a script of readings: what a machine of some cards would answer, one reading after the other."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Reading:
    """One card at one time: MiB by process number, MiB of the driver, %, MHz, reasons, °C."""

    held: Mapping[int, int] = field(default_factory=dict)
    driver: int = 600
    util: int = 98
    clock: int = 1980
    throttle: int = 0
    temperature: int = 60
    lost: bool = False
    pcie: tuple[int, int] = (5, 16)
    replays: int = 0
    nvlink_kib: int | None = None
    nvlink_errors: int | None = None
    uncorrected: int | None = 0

    @property
    def used(self) -> int:
        return self.driver + sum(self.held.values())


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


class FakeNvml(types.ModuleType):
    """The module `pynvml`; `turn` chooses the reading of each card that is answered from now on."""

    NVMLError = NVMLError
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
    NVML_VOLATILE_ECC = 0

    def __init__(self, script: Sequence[Sequence[Reading]], total: int = 143_771) -> None:
        super().__init__("pynvml")
        self.script, self.total, self.turn = script, total, 0
        self.xids: list[tuple[int, int]] = []

    def _of(self, card: int) -> Reading:
        reading = self.script[min(self.turn, len(self.script) - 1)][card]
        if reading.lost:
            raise NVMLError(self.NVML_ERROR_GPU_IS_LOST)
        return reading

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return len(self.script[0])

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetIndex(self, card: int) -> int:
        return card

    def nvmlDeviceGetName(self, card: int) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetPciInfo(self, card: int) -> Any:
        return types.SimpleNamespace(busId=f"0000000{card}:18:00.0")

    def nvmlDeviceGetMemoryInfo(self, card: int) -> Any:
        return types.SimpleNamespace(used=self._of(card).used * MIB, total=self.total * MIB)

    def nvmlDeviceGetComputeRunningProcesses(self, card: int) -> list[Any]:
        held = self._of(card).held
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=mib * MIB) for pid, mib in held.items()]

    def nvmlDeviceGetUtilizationRates(self, card: int) -> Any:
        return types.SimpleNamespace(gpu=self._of(card).util)

    def nvmlDeviceGetPowerUsage(self, card: int) -> int:
        return 600_000

    def nvmlDeviceGetClockInfo(self, card: int, _: int) -> int:
        return self._of(card).clock

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: int) -> int:
        return self._of(card).throttle

    def nvmlDeviceGetTemperature(self, card: int, _: int) -> int:
        return self._of(card).temperature

    def nvmlDeviceGetCurrPcieLinkGeneration(self, card: int) -> int:
        return self._of(card).pcie[0]

    def nvmlDeviceGetMaxPcieLinkGeneration(self, card: int) -> int:
        return 5

    def nvmlDeviceGetCurrPcieLinkWidth(self, card: int) -> int:
        return self._of(card).pcie[1]

    def nvmlDeviceGetMaxPcieLinkWidth(self, card: int) -> int:
        return 16

    def nvmlDeviceGetPcieThroughput(self, card: int, way: int) -> int:
        return (300 + way) * 1024

    def nvmlDeviceGetPcieReplayCounter(self, card: int) -> int:
        return self._of(card).replays

    def nvmlDeviceGetTotalEccErrors(self, card: int, kind: int, _: int) -> int:
        return _supported(self._of(card).uncorrected) if kind else 0

    def nvmlDeviceGetFieldValues(self, card: int, ids: Sequence[int | tuple[int, int]]) -> list[Any]:
        reading = self._of(card)
        known = {138: reading.nvlink_kib, 139: reading.nvlink_kib, 161: reading.nvlink_errors}
        told = [known.get(i if isinstance(i, int) else i[0]) for i in ids]
        return [
            types.SimpleNamespace(
                nvmlReturn=0 if value is not None else 3, valueType=3,
                value=types.SimpleNamespace(ullVal=value),
            )
            for value in told
        ]  # fmt: skip

    def nvmlEventSetCreate(self) -> object:
        return object()

    def nvmlDeviceRegisterEvents(self, card: int, kinds: int, events: object) -> None:
        pass

    def nvmlEventSetWait_v2(self, events: object, _: int) -> Any:
        if not self.xids:
            raise NVMLError(10)
        card, code = self.xids.pop(0)
        return types.SimpleNamespace(eventType=8, device=card, eventData=code)


def _supported(value: int | None) -> int:
    if value is None:
        raise NVMLError(3)
    return value
