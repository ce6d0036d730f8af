"""GPUs as `nvidia-smi --query-gpu` lists them; the banner, reworded by driver 610, is never read."""

from __future__ import annotations

import re

from .machine import Json, Machine, parse_driver_version, without_empty
from .typed import Callable, Dict, List, Optional, Tuple

SOURCE = "nvidia-smi --query-gpu"
PLACES = ("/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
LIMIT_S = 6.0
BASIC_FIELDS = ("index", "name", "uuid", "memory.total", "memory.free", "pci.bus_id", "driver_version")
FIELDS = (
    *BASIC_FIELDS,
    "compute_cap",
    "pci.device_id",
    "serial",
    "mig.mode.current",
    "ecc.mode.current",
    "ecc.errors.uncorrected.volatile.total",
    "persistence_mode",
    "compute_mode",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
)


class SmiFailed(Exception):
    """nvidia-smi gave no GPUs; the message says why."""


def read_gpus(machine: Machine) -> Tuple[List[Json], Optional[str]]:
    """Return the GPUs and the driver's version; raises SmiFailed."""
    program = find_nvidia_smi(machine)
    if program is None:
        raise SmiFailed("nvidia-smi was not found")
    from .commands import CommandFailed

    try:
        status, output = _query(machine, program, FIELDS)
        if status and "is not a valid field" in output:
            status, output = _query(machine, program, BASIC_FIELDS)
            return parse_gpus(output, BASIC_FIELDS, status)
    except CommandFailed as error:
        raise SmiFailed(str(error)) from None
    return parse_gpus(output, FIELDS, status)


def find_nvidia_smi(machine: Machine) -> Optional[str]:
    """Return the path of nvidia-smi: on PATH, or where drivers and containers put it.

    One that the examined environment brings is not NVIDIA's.
    """
    on_path = [folder.rstrip("/") + "/nvidia-smi" for folder in machine.environ.get("PATH", "").split(":")]
    places = [path for path in on_path if path.startswith("/")]
    return next((path for path in (*places, *PLACES) if machine.may_run(path)), None)


def _query(machine: Machine, program: str, fields: Tuple[str, ...]) -> Tuple[int, str]:
    command = [machine.at(program), "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"]
    from .commands import run_command

    return run_command(command, LIMIT_S, machine.environ)


def parse_gpus(output: str, fields: Tuple[str, ...], status: int = 0) -> Tuple[List[Json], Optional[str]]:
    """Read the comma-separated answer; raises SmiFailed with its first line when it is none."""
    rows = [_row(line, fields) for line in output.splitlines() if line.strip()]
    known = [row for row in rows if row is not None]
    if not known:
        line = (output.strip().splitlines() or ["nothing"])[0][:120]
        raise SmiFailed("nvidia-smi ended with %d and said: %s" % (status, line))
    return [gpu_of(row) for row in known], parse_driver_version(known[0].get("driver_version", ""))


def _row(line: str, fields: Tuple[str, ...]) -> Optional[Dict[str, str]]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(fields) or not re.fullmatch(r"[0-9]{1,3}", cells[0]):
        return None
    return {
        name: cell
        for name, cell in zip(fields, cells)  # noqa: B905 (strict= is newer than Python 3.8)
        if not re.match(r"\[?(N/A|Unknown|Not Supported)", cell)
    }


def gpu_of(row: Dict[str, str]) -> Json:
    """Return one GPU of its cells."""
    return without_empty(
        {
            "index": int(row["index"]),
            "source": SOURCE,
            "name": row.get("name"),
            "uuid": row.get("uuid"),
            "compute_capability": _matching(row, "compute_cap", r"[0-9]{1,2}\.[0-9]", str),
            "memory_total_bytes": _mebibytes(row, "memory.total"),
            "memory_free_bytes": _mebibytes(row, "memory.free"),
            "pci_id": _pci_id(row.get("pci.device_id", "")),
            "pci_bus": row.get("pci.bus_id"),
            "serial": row.get("serial"),
            "mig": row.get("mig.mode.current"),
            "ecc": row.get("ecc.mode.current"),
            "ecc_uncorrected": _matching(row, "ecc.errors.uncorrected.volatile.total", r"[0-9]{1,9}", int),
            "persistence": {"Enabled": True, "Disabled": False}.get(row.get("persistence_mode", "")),
            "compute_mode": row.get("compute_mode"),
            "pcie_generation": _matching(row, "pcie.link.gen.current", r"[0-9]{1,9}", int),
            "pcie_generation_max": _matching(row, "pcie.link.gen.max", r"[0-9]{1,9}", int),
            "pcie_width": _matching(row, "pcie.link.width.current", r"[0-9]{1,9}", int),
            "pcie_width_max": _matching(row, "pcie.link.width.max", r"[0-9]{1,9}", int),
        }
    )


def _matching(row: Dict[str, str], name: str, pattern: str, kind: Callable[[str], object]) -> object:
    cell = row.get(name, "")
    return kind(cell) if re.fullmatch(pattern, cell) else None


def _mebibytes(row: Dict[str, str], name: str) -> Optional[int]:
    cell = row.get(name, "")
    return int(cell) << 20 if re.fullmatch(r"[0-9]{1,12}", cell) else None


def _pci_id(cell: str) -> Optional[str]:
    """Return `10de:2335` of nvidia-smi's `0x233510DE`."""
    match = re.fullmatch(r"0x([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", cell)
    return "%s:%s" % (match.group(2).lower(), match.group(1).lower()) if match else None
