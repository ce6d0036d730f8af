"""What decides beside other machines: limits, clock, locale, governor, NUMA, DIMMs, modules."""

from __future__ import annotations

import re
import sys
import time

from .machine import Json, Machine, fact, observed, read_each, unknown
from .typed import Callable, Dict, Tuple

DMI = "/sys/class/dmi/id/"
NODES = "/sys/devices/system/node"
EDAC = "/sys/devices/system/edac/mc"
GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
LIMITS = ("nofile", "memlock", "nproc", "stack", "core")
MODULES = (
    *("nvidia_peermem", "nv_peer_mem", "gdrdrv", "nvidia_fs"),
    *("ib_core", "ib_umad", "rdma_cm", "mlx5_core", "mlx5_ib", "efa", "irdma", "bnxt_re"),
)
CONVENTIONAL = ("", "C", "POSIX")
TIMEX_BYTES, UNSYNCHRONISED = 256, 5


def read(machine: Machine) -> Json:
    """Return the facts, each guarded on its own."""
    return {"host": {"limits": read_limits(), **read_each(machine, READERS)}}


def read_limits() -> Dict[str, int]:
    """Return the soft limits that a process started here gets; -1 where there is none."""
    try:
        import resource
    except ImportError:
        return {}
    numbers = {name: getattr(resource, "RLIMIT_" + name.upper(), None) for name in LIMITS}
    soft = {name: resource.getrlimit(n)[0] for name, n in numbers.items() if n is not None}
    return {name: -1 if limit < 0 or limit >= 1 << 62 else limit for name, limit in soft.items()}


def _product(machine: Machine) -> Json:
    name = (machine.text(DMI + "product_name") or "").strip()
    return fact(name or None, DMI + "product_name", "the firmware's tables are closed to us")


def _memory_modules(machine: Machine) -> Json:
    """Count the DIMMs with a size below the memory controllers (EDAC)."""
    if not machine.is_folder(EDAC):
        return unknown("no driver of the memory controller tells its modules")
    places = [
        "%s/%s/%s/size" % (EDAC, mc, name)
        for mc in machine.names(EDAC)
        if re.fullmatch(r"mc\d+", mc)
        for name in machine.names("%s/%s" % (EDAC, mc))
        if re.match(r"(?:dimm|rank)\d+$", name)
    ]
    sizes = [(machine.text(place) or "0").strip() for place in places]
    filled = sum(1 for size in sizes if size.isdigit() and int(size))
    return fact(filled or None, EDAC, "the memory controllers' driver tells no module")


def _numa_nodes(machine: Machine) -> Json:
    found = [name for name in machine.names(NODES) if re.fullmatch(r"node\d+", name)]
    return fact(len(found) or None, NODES, "the kernel does not tell")


def _governor(machine: Machine) -> Json:
    name = (machine.text(GOVERNOR) or "").strip()
    return fact(name or None, GOVERNOR, "the kernel does not scale the cores' clocks here")


def _locale(machine: Machine) -> Json:
    """Return the locale of programs started here: the first variable that is set decides."""
    name = next((n for n in ("LC_ALL", "LC_CTYPE", "LANG") if machine.environ.get(n)), "LANG")
    value = machine.environ.get(name, "")
    return observed("C" if value in CONVENTIONAL else value[:80], name)


def _clock(machine: Machine) -> Json:
    """Ask the kernel whether something keeps its clock (adjtimex(2), reading alone)."""
    if not sys.platform.startswith("linux") or machine.root:
        return unknown("only Linux' kernel tells")
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "adjtimex", None)
    if function is None:
        return unknown("this C library has no adjtimex")
    state = function(ctypes.create_string_buffer(TIMEX_BYTES))
    if state < 0:
        return unknown("adjtimex is refused to us")
    return observed("not synchronised" if state == UNSYNCHRONISED else "synchronised", "adjtimex")


def _time(machine: Machine) -> Json:
    return observed(int(time.time()), "the system's clock")


def _modules(machine: Machine) -> Json:
    if not machine.is_folder("/sys/module"):
        return unknown("/sys/module is closed to us")
    return observed([name for name in MODULES if machine.is_folder("/sys/module/" + name)], "/sys/module")


READERS: Tuple[Tuple[str, Callable[[Machine], Json]], ...] = (
    ("product", _product),
    ("memory_modules", _memory_modules),
    ("numa_nodes", _numa_nodes),
    ("governor", _governor),
    ("locale", _locale),
    ("clock", _clock),
    ("time_s", _time),
    ("modules", _modules),
)
FACTS = tuple("host." + name for name, _ in READERS)
