"""All that NVML tells, as one answer in plain JSON terms: asked in a process of its own."""

from __future__ import annotations

import re

from .isolation import answer_isolated
from .machine import (
    Json,
    Machine,
    fact,
    load_shared_library,
    observed,
    parse_driver_version,
    unknown,
    unread_parts,
)
from .nvml import Fabric, Nvml, NvmlAbsent, NvmlError, open_nvml
from .nvml_gpu import read_gpu
from .typed import Any, Optional

SOURCE = "NVML"
LIMIT_S = 15
MAX_GPUS, MAX_CUDA = 256, 99990
STOPPED, COMPLETED = (1, 2), 3


def main() -> None:
    """Answer our parent."""
    answer_isolated(lambda: tell(Machine(load_library=load_shared_library)), LIMIT_S)


def tell(machine: Machine) -> Json:
    """Return `driver` and `gpus`; `absent` where there is no NVML, `refused` with the error it answered."""
    try:
        nvml = open_nvml(machine)
    except NvmlAbsent as error:
        return {"absent": str(error)}
    except NvmlError as error:
        return {"refused": str(error), "code": error.code}
    try:
        return _told(machine, nvml)
    except NvmlError as error:
        return {"refused": str(error), "code": error.code}
    finally:
        nvml.close()


def _told(machine: Machine, nvml: Nvml) -> Json:
    count = nvml.number("nvmlDeviceGetCount_v2", top=MAX_GPUS)
    gpus = [read_gpu(nvml, machine, index) for index in range(count)]
    driver = {
        "version": _version(nvml, "nvmlSystemGetDriverVersion", ""),
        "user_version": _version(nvml, "nvmlSystemGetNVMLVersion", r"\d+\."),
        "cuda": _cuda(nvml),
        "nvml": observed("ok", SOURCE),
    }
    fabric = _fabric(nvml) if gpus else None
    if fabric is not None:
        driver["fabric_manager"] = observed(fabric, "NVML, the GPU's fabric state")
    answer: Json = {"driver": driver, "gpus": observed(gpus, SOURCE)}
    unread = unread_parts("gpus", nvml.absurd)
    return dict(answer, unread=unread) if unread else answer


def _version(nvml: Nvml, name: str, before: str) -> Json:
    """Return a driver version; in NVML's own, `13.580.159.04`, the CUDA major stands before it."""
    try:
        text = nvml.text(name)
    except NvmlError as error:
        return unknown(str(error))
    version = parse_driver_version(re.sub("^" + before, "", text))
    return fact(version, SOURCE, "NVML answered %r" % text[:40])


def _cuda(nvml: Nvml) -> Json:
    try:
        number = nvml.number("nvmlSystemGetCudaDriverVersion_v2", top=MAX_CUDA)
    except NvmlError as error:
        return unknown(str(error))
    return observed("%d.%d" % (number // 1000, number % 1000 // 10), SOURCE)


def _fabric(nvml: Nvml) -> Optional[str]:
    """Return whether the fabric of the first GPU stands; None where there is none to manage."""
    try:
        device: Any = nvml.handle("nvmlDeviceGetHandleByIndex_v2", 0)
        state = nvml.fill(Fabric, "nvmlDeviceGetGpuFabricInfo", device).state
    except NvmlError:
        return None
    return "running" if state == COMPLETED else "stopped" if state in STOPPED else None
