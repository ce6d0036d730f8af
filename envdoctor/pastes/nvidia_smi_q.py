"""`nvidia-smi -q`: an indented log of keys and values, one block a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from envdoctor import lazy_re as re
from envdoctor.facts import CudaVersion, DriverVersion, Gpu
from envdoctor.facts.quantities import parse_size
from envdoctor.pastes.sightings import Paste, Sighting

_KIND = "nvidia-smi -q"
_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")
_PAIR = re.compile(r"^(\s{0,40})([A-Za-z][\w .()/-]{0,60}?)\s{0,60}:\s+(\S.{0,200})$")
_SECTION = re.compile(r"^(\s{4,40})([A-Z][\w .()/-]{1,60}?)\s*$")


@dataclass(slots=True)
class _Block:
    """The key paths of one GPU's block, and the index of its first line."""

    bus: str
    line: int
    values: dict[str, str] = field(default_factory=dict)


def parse_nvidia_smi_q(paste: Paste) -> Iterator[Sighting]:
    """Yield driver, CUDA ceiling and each GPU's name, memory, ECC, MIG, PCIe and row remapping."""
    blocks, head = _blocks(paste)
    yield from _head(paste, head)
    gpus = tuple(_gpu(i, block, paste.at(_KIND, block.line)) for i, block in enumerate(blocks))
    if gpus:
        yield Sighting("gpus", gpus)


def _blocks(paste: Paste) -> tuple[list[_Block], dict[str, tuple[str, int]]]:
    blocks: list[_Block] = []
    head: dict[str, tuple[str, int]] = {}
    path: list[tuple[int, str]] = []
    started = False
    for index, line in enumerate(paste.lines):
        started = started or "NVSMI LOG" in line or bool(_GPU.match(line))
        if not started or not line:
            continue
        if match := _GPU.match(line):
            blocks.append(_Block(match[1], index))
            path = []
        elif match := _PAIR.match(line):
            path = [step for step in path if step[0] < len(match[1])]
            key = ".".join([*(name for _, name in path), match[2]])
            if blocks and match[1]:
                blocks[-1].values.setdefault(key, match[3].strip())
            elif not blocks:
                head.setdefault(match[2], (match[3].strip(), index))
            else:
                return blocks, head
        elif match := _SECTION.match(line):
            path = [step for step in path if step[0] < len(match[1])]
            path.append((len(match[1]), match[2]))
        else:
            continue
        paste.claimed.add(index)
    return blocks, head


def _head(paste: Paste, head: dict[str, tuple[str, int]]) -> Iterator[Sighting]:
    for keys, place, kind in (
        (("Driver Version", "KMD Version"), "driver.version", DriverVersion),
        (("CUDA Version", "CUDA UMD Version"), "driver.cuda", CudaVersion),
    ):
        for key in keys:
            if key in head:
                try:
                    yield Sighting(place, kind.parse(head[key][0]), paste.at(_KIND, head[key][1]))
                except ValueError:
                    continue


def _gpu(index: int, block: _Block, source: str) -> Gpu:
    values = block.values
    total, free = (parse_size(values.get(f"FB Memory Usage.{key}", "")) for key in ("Total", "Free"))
    mig = values.get("MIG Mode.Current", values.get("Current", "") if "MIG Mode" in values else "")
    return Gpu(
        index,
        source,
        name=values.get("Product Name"),
        uuid=values.get("GPU UUID"),
        memory_total_bytes=total,
        memory_free_bytes=free,
        pci_id=_pci_id(values.get("PCI.Device Id", "")),
        pci_bus=block.bus,
        mig=mig.lower() if mig in ("Enabled", "Disabled") else None,
        ecc=values.get("ECC Mode.Current", "").lower() or None,
        ecc_uncorrected=_count(values, ("DRAM Uncorrectable", "Uncorrectable")),
        remapped_rows_pending=_yes(values.get("Remapped Rows.Pending")),
        remapped_rows_failed=_yes(values.get("Remapped Rows.Remapping Failure Occurred")),
        persistence={"Enabled": True, "Disabled": False}.get(values.get("Persistence Mode", "")),
        compute_mode=values.get("Compute Mode"),
        pcie_generation=_number(values.get("PCI.GPU Link Info.PCIe Generation.Current")),
        pcie_generation_max=_number(values.get("PCI.GPU Link Info.PCIe Generation.Max")),
        pcie_width=_number(values.get("PCI.GPU Link Info.Link Width.Current")),
        pcie_width_max=_number(values.get("PCI.GPU Link Info.Link Width.Max")),
        throttle_reasons=_active(values),
    )


def _pci_id(text: str) -> str | None:
    match = re.match(r"0x([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})$", text)
    return f"{match[2]}:{match[1]}".lower() if match else None


def _number(text: str | None) -> int | None:
    match = re.match(r"(\d{1,4})x?$", text or "")
    return int(match[1]) if match else None


def _yes(text: str | None) -> bool | None:
    return {"Yes": True, "No": False}.get(text or "")


def _count(values: dict[str, str], names: tuple[str, ...]) -> int | None:
    for key, value in values.items():
        if "Volatile" in key and key.endswith(names) and value.isdecimal() and len(value) < 12:
            return int(value)
    return None


def _active(values: dict[str, str]) -> tuple[str, ...]:
    """Return the reasons for which clocks are held down, without mere idleness."""
    return tuple(
        key.rpartition(".")[2]
        for key, value in values.items()
        if value == "Active"
        and ("Event Reasons." in key or "Throttle Reasons." in key)
        and not key.endswith("Idle")
    )
