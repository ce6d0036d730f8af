"""NVML, NVIDIA's management library, called through ctypes: the few calls that the probes need."""

from __future__ import annotations

import ctypes

from .library_paths import NVML, NVML_NOT_FOUND
from .machine import Machine
from .typed import Any, List, Tuple

FUNCTION_NOT_FOUND = 13
MAX_NUMBER, MAX_BYTES = 0xFFFFFFFF, 1 << 50


class NvmlAbsent(Exception):
    """There is no NVML on this machine; the message says what was looked for."""


class NvmlError(Exception):
    """NVML answered with an error: its code and its words."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__("%s (NVML error %d)" % (text, code))
        self.code = code


class Absurd(NvmlError):
    """NVML answered what no card can have."""

    def __init__(self, value: int, what: str) -> None:
        Exception.__init__(self, "NVML answered %d %s, which no machine has" % (value, what))
        self.code = 0


def printable(data: bytes) -> str:
    """Return a library's text with a mark in place of what is no text."""
    text = data.decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


class Memory(ctypes.Structure):
    """nvmlMemory_t: bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Pci(ctypes.Structure):
    """nvmlPciInfo_t; `pci_device` holds the device id in its upper and the vendor's in its lower half."""

    _fields_ = (
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pci_device", ctypes.c_uint),
        ("pci_subsystem", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


class Process(ctypes.Structure):
    """nvmlProcessInfo_t, as versions 2 and 3 of the call fill it."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Fabric(ctypes.Structure):
    """nvmlGpuFabricInfo_t; `state` is 0 not supported, 1 not started, 2 in progress, 3 completed."""

    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


class Nvml:
    """An open NVML. `library` is what ctypes loaded, or anything with the same functions."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.absurd: List[str] = []
        self.call("nvmlInit_v2")

    def close(self) -> None:
        """Release NVML."""
        self._library.nvmlShutdown()

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raises NvmlError when it fails or this driver does not have it."""
        function = getattr(self._library, name, None)
        if function is None:
            raise NvmlError(FUNCTION_NOT_FOUND, "this driver has no %s" % name)
        code = int(function(*arguments))
        if code:
            raise NvmlError(code, self._words(code))

    def _words(self, code: int) -> str:
        function = getattr(self._library, "nvmlErrorString", None)
        if function is None:
            return "unknown error"
        try:
            function.restype = ctypes.c_char_p
        except AttributeError:
            pass
        words = function(code)
        return words.decode("utf-8", "replace") if isinstance(words, bytes) else "unknown error"

    def text(self, name: str, *arguments: Any) -> str:
        """Return the text that a function fills in."""
        buffer = ctypes.create_string_buffer(256)
        self.call(name, *arguments, buffer, ctypes.c_uint(256))
        return printable(buffer.value)

    def bounded(self, value: int, top: int, what: str) -> int:
        """Return a number up to `top`; raises Absurd for a larger one, and keeps its words."""
        if value > top:
            error = Absurd(value, what)
            self.absurd.append(str(error))
            raise error
        return value

    def number(self, name: str, *arguments: Any, top: int = MAX_NUMBER) -> int:
        """Return the number that a function fills in; raises Absurd above `top`."""
        value = ctypes.c_uint()
        self.call(name, *arguments, ctypes.byref(value))
        return self.bounded(value.value, top, "to " + name)

    def long_number(self, name: str, *arguments: Any) -> int:
        """Return the 64-bit number that a function fills in."""
        value = ctypes.c_ulonglong()
        self.call(name, *arguments, ctypes.byref(value))
        return value.value

    def numbers(self, count: int, name: str, *arguments: Any) -> Tuple[int, ...]:
        """Return the `count` numbers that a function fills in."""
        values = [ctypes.c_uint() for _ in range(count)]
        self.call(name, *arguments, *[ctypes.byref(value) for value in values])
        return tuple(value.value for value in values)

    def fill(self, kind: Any, name: str, *arguments: Any) -> Any:
        """Return the structure that a function fills in."""
        value = kind()
        self.call(name, *arguments, ctypes.byref(value))
        return value

    def handle(self, name: str, *arguments: Any) -> Any:
        """Return the device handle that a function fills in."""
        return self.fill(ctypes.c_void_p, name, *arguments)

    def processes(self, device: Any) -> List[Process]:
        """Return the compute processes on a device."""
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        if getattr(self._library, name, None) is None:
            name = "nvmlDeviceGetComputeRunningProcesses_v2"
        count, entries = ctypes.c_uint(128), (Process * 128)()
        self.call(name, device, ctypes.byref(count), entries)
        return list(entries[: count.value])


def open_nvml(machine: Machine) -> Nvml:
    """Load and initialise NVML; raises NvmlAbsent or NvmlError."""
    assert machine.load_library is not None
    for name in NVML:
        try:
            library = machine.load_library(name)
        except OSError:
            continue
        return Nvml(library)
    raise NvmlAbsent(NVML_NOT_FOUND)
