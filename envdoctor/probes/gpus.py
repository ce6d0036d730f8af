"""The GPUs through NVML, else `nvidia-smi --query-gpu`; and what NVML tells of the driver."""

from __future__ import annotations

import os

from . import nvidia_smi
from .commands import CommandFailed, NoAnswer
from .library_paths import NVML, NVML_NOT_FOUND, find_libraries
from .machine import Json, Machine, fact, observed, unknown
from .typed import Dict

FACTS = ("gpus", "driver.nvml", "driver.cuda")
LIMIT_S = 15.0
SIGNS = ("/proc/driver/nvidia/version", "/sys/module/nvidia", "/dev/nvidiactl", "/dev/dxg")
MISMATCH, NOT_LOADED = 18, 9
EXPLAINED = (MISMATCH, NOT_LOADED)
"""NVML's errors that say by themselves what is wrong."""


def read(machine: Machine) -> Json:
    """Return the GPUs and the driver's facts that come with them."""
    try:
        answer = ask_nvml(machine)
    except NoAnswer as error:  # nvidia-smi would ask the same library, and hang as long
        return _unread("NVML: %s" % error)
    except CommandFailed as error:
        return dict(_without_nvml(machine, "NVML: %s" % error), **_unread_part("NVML: %s" % error))
    if "absent" in answer:
        return _without_nvml(machine, answer["absent"])
    if "refused" not in answer:
        return answer
    reason = answer["refused"] if answer["refused"].startswith("NVML") else "NVML: %s" % answer["refused"]
    told = _without_nvml(machine, reason)
    told["driver"]["nvml"] = observed(answer["refused"], "NVML")
    return told if answer["code"] in EXPLAINED else dict(told, **_unread_part(reason))


def ask_nvml(machine: Machine) -> Json:
    """Return NVML's answer; raises CommandFailed when its process gave none.

    A library that crashes, ends its process or never returns takes down a child alone.
    """
    if machine.load_library is not None:
        from .nvml_child import tell

        return tell(machine)
    from .isolation import ask_isolated

    paths = [path for path in NVML if path.startswith("/")]
    if not any(map(machine.exists, (*SIGNS, *paths))) and not find_libraries(machine, NVML[:1]):
        return {"absent": NVML_NOT_FOUND}
    return ask_isolated("nvml_child", LIMIT_S, _environ(machine))


def _environ(machine: Machine) -> Dict[str, str]:
    """Return the variables for the child, in which no library of the examined environment is found first."""
    environ = {name: value for name, value in machine.environ.items() if not name.startswith("PYTHON")}
    folders = [path for path in environ.get("LD_LIBRARY_PATH", "").split(":") if os.path.isabs(path)]
    kept = [path for path in folders if not machine.in_environment(path)]
    return dict(environ, LD_LIBRARY_PATH=":".join(kept))


def _unread(reason: str) -> Json:
    facts = {"driver": {"cuda": unknown(reason), "nvml": unknown(reason)}, "gpus": unknown(reason)}
    return dict(facts, **_unread_part(reason))


def _unread_part(reason: str) -> Json:
    return {"unread": {"gpus": reason}}


def _without_nvml(machine: Machine, reason: str) -> Json:
    driver = {"cuda": unknown(reason), "nvml": unknown(reason)}
    try:
        gpus, version = nvidia_smi.read_gpus(machine)
    except nvidia_smi.SmiFailed as error:
        return {"driver": driver, "gpus": unknown("%s; %s" % (reason, error))}
    driver["version"] = fact(version, nvidia_smi.SOURCE, "nvidia-smi does not tell")
    return {"driver": driver, "gpus": observed(gpus, nvidia_smi.SOURCE)}
