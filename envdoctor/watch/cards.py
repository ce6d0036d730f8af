"""The cards, through NVIDIA's own binding of NVML: for what lives longer than a probe."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from envdoctor.facts.quantities import MIB
from envdoctor.watch.links import EVERY_S, LinkReader
from envdoctor.watch.moment import Card, Link

_SLOW_EVERY = 5
"""Readings of memory for each one of the rest."""
XID_EVENT = 8
_MOST_ASKED = 64
_DEVICES = ("/dev/nvidia", "/dev/dxg")


@dataclass(slots=True)
class _Device:
    """One card as its counters were last read."""

    handle: Any
    name: str
    total: int
    address: str = "PCI:unknown"
    top: int = 0
    util: int | None = None
    power: int | None = None
    clock: int | None = None
    throttle: int = 0
    temperature: int | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A process of someone else on a card, MiB."""

    card: int
    pid: int
    name: str
    used: int


@dataclass(slots=True)
class Cards:
    """Every card that NVML shows; `reason` says why there are none."""

    reason: str = ""
    names: tuple[str, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    xids: list[tuple[int, int]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    _told_lost: set[int] = field(default_factory=set)
    _nvml: Any = None
    _devices: list[_Device] = field(default_factory=list)
    _readers: list[LinkReader] = field(default_factory=list)
    _links: list[Link] = field(default_factory=list)
    _events: Any = None
    _turn: int = 0
    _pids: frozenset[int] = frozenset()
    _matched: bool = False
    """True once one of the driver's process numbers was seen to be one of here: they count the same."""

    def sample(self, pids: frozenset[int]) -> None:
        """Read memory, and by turns the rest."""
        slow = self._turn % _SLOW_EVERY == 0
        self._turn += 1
        self._pids = pids
        for index, device in enumerate(self._devices):
            with self._or_lost(index):
                used = int(self._nvml.nvmlDeviceGetMemoryInfo(device.handle).used) // MIB
                device.top = max(device.top, used)
                if slow:
                    self._slowly(device)
        if slow:
            self._read_events()
            self._read_links()

    def _read_links(self) -> None:
        """Read the links of one card, each in its turn."""
        turn = self._turn // _SLOW_EVERY % max(EVERY_S, len(self._readers))
        if turn < len(self._readers) and turn not in self.lost:
            self._links.append(self._readers[turn].read(time.monotonic()))

    def take_links(self) -> tuple[Link, ...]:
        """Return the links that were read since the last call."""
        taken, self._links = tuple(self._links), []
        return taken

    def fold(self) -> tuple[Card, ...]:
        """Return the cards, with the most memory since the last time."""
        return tuple(self._folded(index, device) for index, device in enumerate(self._devices))

    def _folded(self, index: int, device: _Device) -> Card:
        """Read what is used and by whom at one time: what grows in between would count as the other's."""
        used, ours = device.top, None
        with self._or_lost(index):
            used = int(self._nvml.nvmlDeviceGetMemoryInfo(device.handle).used) // MIB
            ours = self._read_processes(index, device)
        card = Card(
            used, max(used, device.top), device.total, ours, device.util, device.power, device.clock,
            device.throttle, device.temperature,
        )  # fmt: skip
        device.top = used
        return card

    def _slowly(self, device: _Device) -> None:
        nvml, handle = self._nvml, device.handle
        device.util = self._asked(lambda: int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        device.power = self._asked(lambda: int(nvml.nvmlDeviceGetPowerUsage(handle)) // 1000)
        device.clock = self._asked(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))
        why_slow = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        device.throttle = self._asked(lambda: int(why_slow(handle))) or 0
        device.temperature = self._asked(
            lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        )

    def _read_processes(self, index: int, device: _Device) -> int | None:
        """Return what the run holds of a card, MiB; None where that is not told."""
        nvml, pids = self._nvml, self._pids
        processes = self._asked(lambda: list(nvml.nvmlDeviceGetComputeRunningProcesses(device.handle)))
        others = tuple(n for n in self.neighbours if n.card != index)
        held = [(int(p.pid), int(p.usedGpuMemory or 0) // MIB) for p in processes or ()]
        mine = [used for pid, used in held if pid in pids]
        self._matched = self._matched or bool(mine) or any(_is_of_here(pid) for pid, _ in held)
        if processes is None or not self._matched:
            self.neighbours = others
            return None if use_cards(pids) else 0
        foreign = [(pid, used) for pid, used in held if pid not in pids]
        found = tuple(Neighbour(index, pid, _name(pid), used) for pid, used in foreign)
        self.neighbours = others + found
        return sum(mine)

    def _asked(self, ask: Any) -> Any:
        try:
            return ask()
        except self._nvml.NVMLError as error:
            if _is_lost(self._nvml, error):
                raise
            return None

    @contextlib.contextmanager
    def _or_lost(self, index: int) -> Any:
        try:
            yield
        except self._nvml.NVMLError as error:
            if _is_lost(self._nvml, error):
                self.lost.add(index)

    def _read_events(self) -> None:
        """Take the Xids that the driver has told of since the last time."""
        for _ in range(16):
            if self._events is None:
                return
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
            except self._nvml.NVMLError:
                return
            if int(event.eventType) & XID_EVENT:
                self.xids.append((self._index_of(event.device), int(event.eventData)))

    def who_else(self, card: int | None) -> str:
        """Return the largest processes of others on a card, in brackets; empty where they are not told."""
        found = sorted((n for n in self.neighbours if n.card == card), key=lambda n: -n.used)[:3]
        told = ", ".join(f"process {n.pid}, {n.name}: {n.used} MiB" for n in found)
        return f" ({told})" if told else ""

    def take_failures(self) -> Iterator[str]:
        """Yield what the driver told of failures since the last call, as the kernel's log words it."""
        while self.xids:
            index, code = self.xids.pop(0)
            yield f"NVRM: Xid ({self._address(index)}): {code}, GPU {index}"
        for index in sorted(self.lost - self._told_lost):
            self._told_lost.add(index)
            yield f"NVRM: GPU {index} ({self._address(index)}): GPU has fallen off the bus."

    def _address(self, index: int) -> str:
        return self._devices[index].address if 0 <= index < len(self._devices) else "PCI:unknown"

    def _index_of(self, handle: Any) -> int:
        with contextlib.suppress(self._nvml.NVMLError):
            return int(self._nvml.nvmlDeviceGetIndex(handle))
        return -1


def use_cards(pids: Iterable[int]) -> bool:
    """True where one of the processes has a device of NVIDIA's open, or that cannot be told."""
    return any(_has_device(pid) is not False for pid in sorted(pids)[:_MOST_ASKED])


def _is_of_here(pid: int) -> bool:
    """True for a number that the driver tells and that is here one of a process with a device open."""
    return os.path.exists(f"/proc/{pid}") and _has_device(pid) is True


def _has_device(pid: int) -> bool | None:
    """Whether a process has a device of NVIDIA's open; None where that may not be asked."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_is_device(entry.path) for entry in entries)
    except FileNotFoundError:  # it ended
        return False
    except OSError:
        return None


def _is_device(path: str) -> bool:
    try:
        return os.readlink(path).startswith(_DEVICES)
    except OSError:
        return False


def open_cards() -> Cards:
    """Open NVML; cards that are not there are told with the reason."""
    try:
        import pynvml
    except ImportError as error:
        return Cards(f"NVML's binding does not import: {error}")
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        devices = [_device(pynvml, handle) for handle in handles]
    except pynvml.NVMLError as error:
        return Cards(f"NVML answers: {error}")
    cards = Cards(
        "" if devices else "NVML shows no card", tuple(d.name for d in devices),
        _nvml=pynvml, _devices=devices,
        _readers=[LinkReader(pynvml, handle, index) for index, handle in enumerate(handles)],
    )  # fmt: skip
    cards._events = _listen(pynvml, devices)
    return cards


def _device(nvml: Any, handle: Any) -> _Device:
    name = nvml.nvmlDeviceGetName(handle)
    total = int(nvml.nvmlDeviceGetMemoryInfo(handle).total) // MIB
    address = "PCI:unknown"
    with contextlib.suppress(nvml.NVMLError, AttributeError):
        told = nvml.nvmlDeviceGetPciInfo(handle).busId
        address = "PCI:" + (told.decode() if isinstance(told, bytes) else str(told)).rpartition(".")[0]
    return _Device(handle, name.decode() if isinstance(name, bytes) else str(name), total, address)


def _listen(nvml: Any, devices: list[_Device]) -> Any:
    try:
        events = nvml.nvmlEventSetCreate()
        for device in devices:
            nvml.nvmlDeviceRegisterEvents(device.handle, XID_EVENT, events)
    except (nvml.NVMLError, AttributeError):
        return None
    return events


def _is_lost(nvml: Any, error: Any) -> bool:
    return getattr(error, "value", None) == getattr(nvml, "NVML_ERROR_GPU_IS_LOST", 15)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return "a process that is not seen from here"


THROTTLES: Mapping[int, str] = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x04: "power cap",
}
"""NVML's reasons for low clocks that are no idleness (nvmlClocksEventReasons)."""
