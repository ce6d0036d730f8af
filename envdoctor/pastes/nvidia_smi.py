"""`nvidia-smi`: the banner before and since driver 610, its table of GPUs, and `--query-gpu` as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.facts import ComputeCapability, CudaVersion, DriverVersion, Gpu
from envdoctor.facts.quantities import MIB
from envdoctor.pastes.sightings import Paste, Sighting

_SMI = re.compile(r"NVIDIA-SMI(?: version)?\s{0,8}:?\s{1,8}(\d{3}\.[\d.]+|\d{2,3})")
_DRIVER = re.compile(r"\b(?:Driver|KMD) Version\s?:\s{0,8}(\d{2,3}(?:\.\d{1,5}){1,3})")
_CUDA = re.compile(r"\bCUDA (?:UMD )?Version\s?:\s{0,8}(\d{1,2}\.\d{1,2})")
_ROW = re.compile(
    r"^[|\s]{0,4}(\d{1,3})\s+(?:N/A\s+)?((?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID|[A-Z]{1,2}\d{2,3}\b)[^|]{0,60}?)\s+(On|Off|N/A|WDDM|TCC|MCDM)\s*\|"
)
_BUS = re.compile(r"\|\s*([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
_MEMORY = re.compile(r"(\d{1,7})\s?MiB\s?/\s{0,6}(\d{1,8})\s?MiB")
_LISTED = re.compile(r"^GPU (\d{1,3}): (.{1,80}?)(?: \(UUID: ([\w-]{1,80})\))\s*$")
_FAILED = re.compile(r"NVIDIA-SMI has failed because|Failed to initialize NVML: (.{1,80})")
_CSV_HEADER = re.compile(
    r"^\s*(?:index|name|uuid|gpu_name|driver_version|compute_cap|memory\.total)\b.*,", re.IGNORECASE
)
_CUT_NUMBER = re.compile(r"(?:GTX|RTX|GeForce)\D{0,4}\d{0,3}$")
_KIND = "nvidia-smi"


def parse_nvidia_smi(paste: Paste) -> Iterator[Sighting]:
    """Yield driver, its CUDA ceiling and the GPUs that nvidia-smi printed."""
    banner: set[int] = set()
    for index, line in enumerate(paste.lines):
        if index in paste.claimed:
            continue
        if "NVIDIA-SMI" in line or "Version" in line:
            yield from _parse_banner(paste, index, line, banner)
        elif "," in line and _CSV_HEADER.match(line):
            yield from _parse_csv(paste, index)
    yield from _parse_table(paste)
    yield from _parse_listing(paste)


def _parse_banner(paste: Paste, index: int, line: str, banner: set[int]) -> Iterator[Sighting]:
    source = paste.at(_KIND, index)
    if failed := _FAILED.search(line):
        yield Sighting("driver.nvml", (failed[1] or failed[0]).strip(), source)
    near = bool(banner) and index - max(banner) <= 4
    if "NVIDIA-SMI" in line and _SMI.search(line):
        banner.add(index)
    elif not near and not ("Driver Version" in line and "CUDA" in line):
        return
    if match := _DRIVER.search(line):
        paste.claimed.add(index)
        yield Sighting("driver.version", DriverVersion.parse(match[1]), source)
    if match := _CUDA.search(line):
        paste.claimed.add(index)
        yield Sighting("driver.cuda", CudaVersion.parse(match[1]), source)


def _parse_table(paste: Paste) -> Iterator[Sighting]:
    gpus: list[Gpu] = []
    for index, line in enumerate(paste.lines):
        if "|" not in line or not (match := _ROW.match(line)):
            continue
        below = " ".join(paste.lines[index + 1 : index + 3])
        memory = _MEMORY.search(line) or _MEMORY.search(below)
        bus = _BUS.search(line)
        paste.claimed.add(index)
        gpus.append(
            Gpu(
                int(match[1]),
                paste.at(_KIND, index),
                name=_name(match[2]),
                pci_bus=bus[1] if bus else None,
                memory_total_bytes=int(memory[2]) * MIB if memory else None,
                memory_free_bytes=(int(memory[2]) - int(memory[1])) * MIB if memory else None,
                persistence={"On": True, "Off": False}.get(match[3]),
            )
        )
    if gpus:
        yield Sighting(
            "gpus",
            tuple({gpu.index: gpu for gpu in reversed(gpus)}[i] for i in sorted({g.index for g in gpus})),
        )


def _name(text: str) -> str | None:
    """Return the name as printed; of a shortened one its stem, if that tells the model."""
    name = " ".join(text.split())
    stem = name.removesuffix("...").rstrip()
    if stem != name:
        stem = re.sub(r"\s[A-Za-z]{1,2}$", "", stem)
    if stem in ("NVIDIA", "GeForce", "NVIDIA GeForce", "NVIDIA Graphics Device"):
        return None
    return None if stem != name and _CUT_NUMBER.search(stem) else stem


def _parse_listing(paste: Paste) -> Iterator[Sighting]:
    gpus = []
    for index, line in enumerate(paste.lines):
        if line.startswith("GPU ") and (match := _LISTED.match(line)):
            paste.claimed.add(index)
            gpus.append(Gpu(int(match[1]), paste.at("nvidia-smi -L", index), name=match[2], uuid=match[3]))
    if gpus:
        yield Sighting("gpus", tuple(gpus))


def _parse_csv(paste: Paste, header: int) -> Iterator[Sighting]:
    keys = [key.strip().partition(" ")[0].lower() for key in paste.lines[header].split(",")]
    if not {"name", "gpu_name", "driver_version", "compute_cap"} & set(keys):
        return
    paste.claimed.add(header)
    gpus: list[Gpu] = []
    for index in range(header + 1, min(header + 1025, len(paste.lines))):
        cells = [cell.strip() for cell in paste.lines[index].split(",")]
        if len(cells) != len(keys):
            break
        paste.claimed.add(index)
        row = dict(zip(keys, cells, strict=True))
        yield from _driver_cell(row, paste.at("nvidia-smi --query-gpu", index))
        gpus.append(_gpu_of_row(len(gpus), row, paste.at("nvidia-smi --query-gpu", index)))
    if any(gpu.name for gpu in gpus):
        yield Sighting("gpus", tuple(gpus))


def _driver_cell(row: dict[str, str], source: str) -> Iterator[Sighting]:
    try:
        yield Sighting("driver.version", DriverVersion.parse(row["driver_version"]), source)
    except (KeyError, ValueError):
        return


def _gpu_of_row(position: int, row: dict[str, str], source: str) -> Gpu:
    return Gpu(
        int(row["index"]) if row.get("index", "").isdecimal() and len(row["index"]) < 4 else position,
        source,
        name=row.get("name") or row.get("gpu_name"),
        uuid=row.get("uuid") or row.get("gpu_uuid"),
        compute_capability=_capability(row.get("compute_cap", "")),
        memory_total_bytes=_mebibytes(row.get("memory.total", "")),
        memory_free_bytes=_mebibytes(row.get("memory.free", "")),
        pci_bus=row.get("pci.bus_id") or row.get("gpu_bus_id"),
        mig=_mig(row.get("mig.mode.current")),
    )


def _mig(text: str | None) -> str | None:
    return text.lower() if text in ("Enabled", "Disabled") else None


def _capability(text: str) -> Any:
    try:
        return ComputeCapability.parse(text)
    except ValueError:
        return None


def _mebibytes(text: str) -> int | None:
    match = re.match(r"(\d{1,8})(?:\s?MiB)?$", text)
    return int(match[1]) * MIB if match else None
