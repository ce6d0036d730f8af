"""The GPUs through NVML, else `nvidia-smi --query-gpu`; and what NVML tells of the driver."""

from __future__ import annotations

import re
from typing import Any, Optional

from . import nvidia_smi
from .machine import Json, Machine, fact, observed, parse_driver_version, unknown

FACTS = ("gpus", "driver.nvml", "driver.cuda")
SOURCE = "NVML"
STOPPED, COMPLETED = (1, 2), 3


def read(machine: Machine) -> Json:
    """Return the GPUs and the driver's facts that come with them."""
    from .nvml import NvmlAbsent, NvmlError, open_nvml

    try:
        nvml = open_nvml(machine)
    except NvmlAbsent as error:
        return _without_nvml(machine, str(error), unknown(str(error)))
    except NvmlError as error:
        return _without_nvml(machine, "NVML: %s" % error, observed(str(error), SOURCE))
    try:
        return _with_nvml(machine, nvml)
    except NvmlError as error:
        return _without_nvml(machine, "NVML: %s" % error, observed(str(error), SOURCE))
    finally:
        nvml.close()


def _with_nvml(machine: Machine, nvml: Any) -> Json:
    from .nvml_gpu import read_gpu

    gpus = [read_gpu(nvml, machine, index) for index in range(nvml.number("nvmlDeviceGetCount_v2"))]
    driver = {
        "version": _version(nvml, "nvmlSystemGetDriverVersion", ""),
        "user_version": _version(nvml, "nvmlSystemGetNVMLVersion", r"\d+\."),
        "cuda": _cuda(nvml),
        "nvml": observed("ok", SOURCE),
    }
    fabric = _fabric(nvml) if gpus else None
    if fabric is not None:
        driver["fabric_manager"] = observed(fabric, "NVML, the GPU's fabric state")
    return {"driver": driver, "gpus": observed(gpus, SOURCE)}


def _version(nvml: Any, name: str, before: str) -> Json:
    """Return a driver version; in NVML's own, `13.580.159.04`, the CUDA major stands before it."""
    from .nvml import NvmlError

    try:
        text = nvml.text(name)
    except NvmlError as error:
        return unknown(str(error))
    version = parse_driver_version(re.sub("^" + before, "", text))
    return fact(version, SOURCE, "NVML answered %r" % text[:40])


def _cuda(nvml: Any) -> Json:
    from .nvml import NvmlError

    try:
        number = nvml.number("nvmlSystemGetCudaDriverVersion_v2")
    except NvmlError as error:
        return unknown(str(error))
    return observed("%d.%d" % (number // 1000, number % 1000 // 10), SOURCE)


def _fabric(nvml: Any) -> Optional[str]:
    """Return whether the fabric of the first GPU stands; None where there is none to manage."""
    from .nvml import Fabric, NvmlError

    try:
        device = nvml.handle("nvmlDeviceGetHandleByIndex_v2", 0)
        state = nvml.fill(Fabric, "nvmlDeviceGetGpuFabricInfo", device).state
    except NvmlError:
        return None
    return "running" if state == COMPLETED else "stopped" if state in STOPPED else None


def _without_nvml(machine: Machine, reason: str, nvml: Json) -> Json:
    driver = {"cuda": unknown(reason), "nvml": nvml}
    try:
        gpus, version = nvidia_smi.read_gpus(machine)
    except nvidia_smi.SmiFailed as error:
        return {"driver": driver, "gpus": unknown("%s; %s" % (reason, error))}
    driver["version"] = fact(version, nvidia_smi.SOURCE, "nvidia-smi does not tell")
    return {"driver": driver, "gpus": observed(gpus, nvidia_smi.SOURCE)}
