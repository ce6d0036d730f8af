"""The machine around the GPUs: what GPUs report of their own state, kernel errors, slots, full disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envdoctor.commands import command, commands
from envdoctor.facts import Gpu
from envdoctor.facts.quantities import GIB, whole_number
from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import text_matches
from envdoctor.rules.view import View, explained, symptoms

FULL_GIB = 0.5
SCARCE_GIB = 5.0
"""A 7B checkpoint in 16 bit takes about 15 GB; below this not even a small one can be fetched."""
_PLACES = {
    "hf_cache": ("the Hugging Face cache", "HF_HOME"),
    "torch_cache": ("torch's compile and extension cache", "TORCH_EXTENSIONS_DIR"),
    "tmp": ("the temporary directory", "TMPDIR"),
}
_WORKSTATION = ("geforce", "rtx", "quadro", "titan", "laptop")


def check_gpu_states(view: View) -> Iterable[Finding]:
    """States of a GPU that mean trouble: memory errors, pending remaps, exclusive modes."""
    gpus = view.gpus.require()
    for row in view.matrix.rows(tables.GpuStateRow):
        affected = [gpu for gpu in gpus if _is_in_state(row, gpu)]
        if affected:
            yield _state_finding(row, affected)


def _is_in_state(row: tables.GpuStateRow, gpu: Gpu) -> bool:
    value = getattr(gpu, row.field)
    if value is None or (row.servers_only and _is_workstation(gpu)):
        return False
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return bool(text_matches(shown, row.value))


def _is_workstation(gpu: Gpu) -> bool:
    return any(word in (gpu.name or "").lower() for word in _WORKSTATION)


def _state_finding(row: tables.GpuStateRow, affected: list[Gpu]) -> Finding:
    numbers = ", ".join(str(gpu.index) for gpu in affected)
    first = str(affected[0].index)
    return Finding(
        id=row.id,
        severity=Severity(row.severity),
        summary=f"GPU {numbers} ({affected[0].name or 'NVIDIA'}) {row.summary}.",
        cause=row.cause,
        evidence=tuple(
            Evidence(f"GPU {gpu.index} {row.field}", str(getattr(gpu, row.field)), gpu.source)
            for gpu in affected[:4]
        ),
        remedies=tuple(
            Remedy(text, tuple(command(c.replace("{index}", "{}"), first) for c in row.commands))
            for text in row.remedies
        ),
        rows=(row.id,),
        sources=(row.source,),
    )


def check_xids(view: View) -> Iterable[Finding]:
    """Errors that the kernel logged for a GPU, by their number."""
    lines = dict(_xid_lines(view))
    if not lines:
        if view.facts.origin == "probe":
            return
        raise Skip("no kernel log is told")
    seen = symptoms(view, "SYM-XID")
    told = {s.captured.get("xid") for s in seen}
    for row in view.matrix.rows(tables.XidRow):
        if found := lines.get(row.number):
            history = row.of_programs and str(row.number) not in told
            yield Finding(
                id=row.id,
                severity=Severity.NOTE if history else Severity(row.severity),
                summary=f"The kernel logged Xid {row.number} for a GPU: {row.meaning}.",
                cause=f"NVIDIA's driver reports {row.meaning}.",
                evidence=(found,),
                remedies=(Remedy(row.remedy, ("sudo dmesg -T | grep -i xid",)),),
                rows=(row.id,),
                sources=(row.source,),
                explains=explained(s for s in seen if s.captured.get("xid") == str(row.number)),
                prior=0.8,
            )


def _xid_lines(view: View) -> Iterator[tuple[int, Evidence]]:
    for xid in view.facts.driver.xids:
        yield xid.number, Evidence(f"Xid {xid.number}", xid.text, "kernel log")
    for symptom in symptoms(view, "SYM-XID"):
        if (number := whole_number(symptom.captured.get("xid"))) is not None:
            yield number, Evidence(f"Xid {number}", symptom.text, symptom.source)


def check_slots(view: View) -> Iterable[Finding]:
    """A GPU on fewer PCIe lanes than it and its slot could use."""
    gpus = view.gpus.require()
    known = [gpu for gpu in gpus if gpu.pcie_width and gpu.pcie_width_max]
    if not known:
        raise Skip("the width of the PCIe links is not told")
    narrow = [gpu for gpu in known if (gpu.pcie_width or 0) < (gpu.pcie_width_max or 0)]
    if narrow:
        yield Finding(
            id="GPU-PCIE-WIDTH",
            severity=Severity.NOTE,
            summary=f"GPU {narrow[0].index} runs on {narrow[0].pcie_width} PCIe lanes of "
            f"{narrow[0].pcie_width_max}.",
            cause="The slot, a riser or lane sharing on the board gives fewer lanes, or a contact "
            "is bad: transfers "
            "between host and card, and between cards without NVLink, are slower in proportion.",
            evidence=tuple(
                Evidence(f"GPU {g.index} PCIe width", f"{g.pcie_width} of {g.pcie_width_max}", g.source)
                for g in narrow[:4]
            ),
            remedies=(
                Remedy(
                    "See the link under load, reseat the card, or move it to a slot with all lanes.",
                    ("nvidia-smi -q -d PCI",),
                ),
            ),
            sources=("https://docs.nvidia.com/deploy/nvml-api/index.html",),
        )


def check_disks(view: View) -> Iterable[Finding]:
    """Places that models and caches are written to, with hardly any room left."""
    free = view.facts.host.disk_free_bytes
    if not free:
        raise Skip("the free space of disks is not told")
    for place, (title, variable) in _PLACES.items():
        size = free.get(place)
        if size is not None and size < (SCARCE_GIB if place == "hf_cache" else FULL_GIB) * GIB:
            yield _disk_finding(place, title, variable, size)


def _disk_finding(place: str, title: str, variable: str, size: int) -> Finding:
    return Finding(
        id=f"DISK-FULL-{place.replace('_', '-').upper()}",
        severity=Severity.WARNING,
        summary=f"{title[0].upper()}{title[1:]} has {size / GIB:.1f} GiB left.",
        cause="Downloads and compilations end in 'No space left on device', sometimes with a truncated file.",
        evidence=(Evidence(place, f"{size / GIB:.2f} GiB free", "the file system"),),
        remedies=(
            Remedy("Free it, or point it elsewhere.", commands("export {}=/path/with/room", variable)),
        ),
        sources=("https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",),
    )


RULES = (
    Rule("GPU-STATE", "No GPU reports memory errors or a mode that shuts programs out", check_gpu_states),
    Rule("XID", "The kernel logged no error of a GPU", check_xids),
    Rule("GPU-PCIE-WIDTH", "Every GPU has all its PCIe lanes", check_slots),
    Rule("DISK-FULL", "Caches have room", check_disks),
)
