"""CUDA toolkits on disk: those that CUDA_HOME, PATH, the environment or /usr/local lead to."""

from __future__ import annotations

import os
import re

from .machine import Json, Machine, observed
from .typed import Dict, List, Optional, Tuple

FACTS = ("toolkits",)
LIMIT_S = 3.0
HEADER_BYTES = 1 << 16  # of 1 MiB; the version stands within the first 15 kB


def read(machine: Machine) -> Json:
    """Return the toolkits that carry nvcc; the one that extensions would be built with is active."""
    found: Dict[str, Json] = {}
    notes: List[str] = []
    active = True
    for source, path in candidates(machine):
        real = machine.real(path)
        if not machine.exists(path + "/bin/nvcc"):
            if source == "CUDA_HOME":
                notes.append("CUDA_HOME=%s holds no bin/nvcc" % path)
            continue
        if real in found:
            continue
        version = read_version(machine, path)
        if version is None:
            notes.append("%s: its version could not be read" % path)
            continue
        found[real] = dict(
            {"version": version, "path": path, "source": source}, **({"active": True} if active else {})
        )
        active = False
    answer: Json = {
        "toolkits": observed(list(found.values()), "CUDA_HOME, PATH, /usr/local/cuda*, /opt/cuda")
    }
    return dict(answer, notes=notes) if notes else answer


def candidates(machine: Machine) -> List[Tuple[str, str]]:
    """Return (source, folder) in the order in which torch's extension builder looks."""
    found = [("CUDA_HOME", machine.environ.get(name, "")) for name in ("CUDA_HOME", "CUDA_PATH")]
    nvcc = machine.which("nvcc")
    if nvcc:
        found.append(("nvcc on PATH", toolkit_of(machine, nvcc)))
    prefix = machine.environ.get("CONDA_PREFIX", "")
    found.append(("CONDA_PREFIX", prefix))
    names = [name for name in machine.names("/usr/local") if re.fullmatch(r"cuda(-[\d.]+)?", name)]
    found += [("/usr/local", "/usr/local/" + name) for name in names]
    found += [("/opt", path) for path in ("/opt/cuda", "/usr/lib/cuda")]
    return [(source, path.rstrip("/")) for source, path in found if path.startswith("/")]


def toolkit_of(machine: Machine, nvcc: str) -> str:
    """Return the toolkit that an nvcc belongs to, looking through a wrapping shell script."""
    real = machine.real(nvcc)
    text = machine.text(real, 1024) or ""
    wrapped = re.search(r"(?:^|[^\w/.-])(/\S{1,300})/bin/nvcc\b", text) if text.startswith("#!") else None
    return wrapped.group(1) if wrapped else os.path.dirname(os.path.dirname(real))


def read_version(machine: Machine, path: str) -> Optional[str]:
    """Return a toolkit's version, `12.4`: from its files, else from nvcc itself."""
    for name, pattern in (
        ("version.json", r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"(\d\d?\.\d\d?)\b'),
        ("version.txt", r"CUDA Version (\d\d?\.\d\d?)\b"),
    ):
        match = re.search(pattern, machine.text(path + "/" + name) or "")
        if match:
            return match.group(1)
    for folder in ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"):
        header = re.search(
            r"#define\s+CUDA_VERSION\s+(\d{4,5})\b",
            machine.text(path + "/" + folder + "/cuda.h", HEADER_BYTES) or "",
        )
        if header:
            number = int(header.group(1))
            return "%d.%d" % (number // 1000, number % 1000 // 10)
    for name in machine.names(path + "/conda-meta"):
        package = re.match(r"cuda-nvcc(?:_[\w-]{1,40})?-(\d\d?\.\d\d?)\.", name)
        if package:
            return package.group(1)
    return ask_nvcc(machine, path + "/bin/nvcc")


def ask_nvcc(machine: Machine, nvcc: str) -> Optional[str]:
    """Return the release that `nvcc --version` names, or None; the examined environment's own is not run."""
    from .commands import CommandFailed, run_command

    if not machine.may_run(nvcc):
        return None
    try:
        _, output = run_command([machine.at(nvcc), "--version"], LIMIT_S, machine.environ)
    except CommandFailed:
        return None
    match = re.search(r"release (\d\d?\.\d\d?)\b", output)
    return match.group(1) if match else None
