"""NVIDIA's driver as files tell it: the kernel module, the user libraries, the fabric manager."""

from __future__ import annotations

import re

from .host import read_container
from .library_paths import find_libraries, loader_choice
from .machine import Json, Machine, fact, observed, parse_driver_version, unknown
from .typed import Optional, Tuple

FACTS = ("driver.version", "driver.user_version", "driver.module", "driver.fabric_manager")
PROC_VERSION = "/proc/driver/nvidia/version"
SYS_VERSION = "/sys/module/nvidia/version"
SWITCHES = "/proc/driver/nvidia-nvswitch/devices"
"""A folder for each NVSwitch; the driver makes it on machines without one too."""
FABRIC_MANAGER_PID = "/run/nvidia-fabricmanager/nv-fabricmanager.pid"
FABRIC_MANAGER = "/usr/bin/nv-fabricmanager"


def read(machine: Machine) -> Json:
    """Return the driver's facts that need no library."""
    version, source = read_module_version(machine)
    text = machine.text(PROC_VERSION)
    return {
        "driver": {
            "version": fact(version, source, "no NVIDIA kernel module is loaded"),
            "user_version": read_user_version(machine),
            "module": fact(parse_module_kind(text or ""), PROC_VERSION, PROC_VERSION + " does not tell"),
            "fabric_manager": read_fabric_manager(machine),
        }
    }


def read_module_version(machine: Machine) -> Tuple[Optional[str], str]:
    """Return the loaded kernel module's version and where it was read."""
    version = parse_module_version(machine.text(PROC_VERSION) or "")
    if version:
        return version, PROC_VERSION
    return parse_driver_version(machine.text(SYS_VERSION) or ""), SYS_VERSION


def parse_module_version(text: str) -> Optional[str]:
    """Read the version of the line that opens with `NVRM version:`."""
    match = re.search(r"NVRM version:[^\n]{0,200}?\s(\d{2,4}\.\d+(?:\.\d+)?)\b", text)
    return match.group(1) if match else None


def parse_module_kind(text: str) -> Optional[str]:
    """Read `open` or `proprietary` of the kernel module's own description."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    if not line:
        return None
    return "open" if "Open Kernel Module" in line else "proprietary"


def read_user_version(machine: Machine) -> Json:
    """Return the version of the libcuda that programs load, which its file name carries."""
    copies = find_libraries(machine, ("libcuda.so.1",))
    chosen = loader_choice(copies)
    if chosen is None:
        return unknown(
            "libcuda.so.1 was not found: no NVIDIA driver's libraries are installed where this runs"
        )
    version = parse_driver_version(machine.real(chosen.path).rpartition("libcuda.so.")[2])
    return fact(version, chosen.path, chosen.path + " carries no version in its name")


def read_fabric_manager(machine: Machine) -> Json:
    """Return `running`, `stopped` or `absent`; unknown where none is needed, or a host would run it."""
    if not machine.names(SWITCHES):
        return unknown("no NVSwitch is seen here that would need one")
    pid = (machine.text(FABRIC_MANAGER_PID) or "").strip()
    if pid.isdigit() and (machine.text("/proc/%s/comm" % pid) or "").startswith("nv-fabricmanage"):
        return observed("running", FABRIC_MANAGER_PID)
    if read_container(machine).get("value", "none") != "none":
        return unknown("a container does not see what its host runs")
    installed = machine.exists(FABRIC_MANAGER)
    return observed("stopped" if installed else "absent", FABRIC_MANAGER)
