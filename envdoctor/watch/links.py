"""What joins a card to the host and to other cards, and its memory's errors, as far as the card tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from envdoctor.watch.moment import Link

EVERY_S = 10
"""Seconds between two readings of a card at least: NVML measures PCIe's throughput for 20 ms each way."""
_ALL_LINKS = 0xFFFF_FFFF
_SENT, _RECEIVED = (138, _ALL_LINKS), (139, _ALL_LINKS)
"""NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX and _RX: KiB since the driver was loaded."""
_ERRORS = ((161, _ALL_LINKS), (162, _ALL_LINKS))
"""NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY and _RECOVERY."""
_ERRORS_BEFORE_HOPPER = (52, 59)
"""NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL and _RECOVERY_ERROR_COUNT_TOTAL."""
_VALUES = {1: "uiVal", 2: "ulVal", 3: "ullVal"}
"""By nvmlValueType_t the member of its union: the unsigned ones, which counters are."""


class LinkReader:
    """Reads one card's links and errors; what the card does not support stays unknown."""

    def __init__(self, nvml: Any, handle: Any, card: int) -> None:
        self._nvml, self._handle, self._card = nvml, handle, card
        self._before: tuple[float, int | None, int | None] = (0.0, None, None)

    def read(self, t: float) -> Link:
        """Return the counters at `t` seconds of any clock, rates since the last reading."""
        nvml, handle = self._nvml, self._handle
        total = nvml.nvmlDeviceGetTotalEccErrors
        sent, received = self._nvlink(t)
        return Link(
            self._card,
            self._asked(lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
            self._asked(lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
            self._asked(lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
            self._asked(lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
            self._asked(lambda: nvml.nvmlDeviceGetPcieThroughput(handle, 0) // 1024),
            self._asked(lambda: nvml.nvmlDeviceGetPcieThroughput(handle, 1) // 1024),
            self._asked(lambda: nvml.nvmlDeviceGetPcieReplayCounter(handle)),
            sent,
            received,
            self._nvlink_errors(),
            self._asked(lambda: total(handle, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC)),
            self._asked(
                lambda: total(handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
            ),
        )

    def _nvlink(self, t: float) -> tuple[int | None, int | None]:
        """Return what NVLink carried since the last reading, MiB/s."""
        then, *before = self._before
        now = self._fields((_SENT, _RECEIVED))
        self._before = (t, now[0], now[1])
        sent, received = (_rate(old, new, t - then) for old, new in zip(before, now, strict=True))
        return sent, received

    def _nvlink_errors(self) -> int | None:
        found = (_sum(self._fields(ids)) for ids in (_ERRORS, _ERRORS_BEFORE_HOPPER))
        return next((count for count in found if count is not None), None)

    def _fields(self, ids: Sequence[int | tuple[int, int]]) -> list[int | None]:
        try:
            return [self._value(field) for field in self._nvml.nvmlDeviceGetFieldValues(self._handle, ids)]
        except self._nvml.NVMLError:
            return [None] * len(ids)

    def _value(self, field: Any) -> int | None:
        kind = _VALUES.get(field.valueType)
        return None if field.nvmlReturn or kind is None else int(getattr(field.value, kind))

    def _asked(self, ask: Callable[[], int]) -> int | None:
        try:
            return int(ask())
        except self._nvml.NVMLError:
            return None


def _rate(old: int | None, new: int | None, seconds: float) -> int | None:
    """Return MiB/s between two counts of KiB; None where one is unknown, or the driver began anew."""
    return None if old is None or new is None or new < old else round((new - old) / 1024 / seconds)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
