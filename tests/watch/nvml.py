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

    def nvmlEventSetCreate(self) -> object:
        return object()

    def nvmlDeviceRegisterEvents(self, card: int, kinds: int, events: object) -> None:
        pass

    def nvmlEventSetWait_v2(self, events: object, _: int) -> Any:
        if not self.xids:
            raise NVMLError(10)
        card, code = self.xids.pop(0)
        return types.SimpleNamespace(eventType=8, device=card, eventData=code)
