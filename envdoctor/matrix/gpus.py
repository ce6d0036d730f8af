"""GPUs by PCI id and by name, as the matrix knows them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from envdoctor import lazy_re as re
from envdoctor.errors import InputError, nearest
from envdoctor.facts import ComputeCapability
from envdoctor.facts.quantities import GIB
from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix
from envdoctor.values import dataclass

if TYPE_CHECKING:
    from envdoctor.facts import Gpu

_STATED_MEMORY = re.compile(r"(?<![a-z0-9.])(\d{1,3})\s?g(?:i?b)?(?![\w.])")
_NOMINAL_SHARE = 0.08
_OTHERS = re.compile(
    r"(?i)\b(?:AMD|Radeon|Instinct|RX ?\d{3,4}|MI\d{2,3}[AX]?|Intel|Arc|Gaudi|Ascend|TPU|Apple|M[1-9])\b"
)
"""How accelerators of other makers than NVIDIA are called."""
_MAKERS = re.compile(r"^(?:NVIDIA |AMD |Intel )?(?:GeForce |Instinct |Radeon )?")
_NOISE = re.compile(r"\b(nvidia|geforce|tesla|quadro|graphics|gpu)\b|\(r\)|\(tm\)|[^a-z0-9.+ ]")


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """A GPU model of the matrix. `memory_bytes` is None where the name alone leaves it open."""

    id: str
    name: str
    compute_capability: ComputeCapability
    memory_bytes: int | None
    processor: str = ""
    """That of every machine with it; empty where it differs."""
    wheels: str = ""
    """Who builds its wheels of torch, where the package index has none that find it."""


def find_gpu(matrix: Matrix, name: str | None, pci_id: str | None = None) -> KnownGpu | None:
    """Return the model of that PCI id (`10de:2335`) or else of that name; None when it is not known."""
    rows = matrix.rows(tables.GpuRow)
    if pci_id:
        device = pci_id.lower().removeprefix("10de:").removeprefix("0x")[:4]
        for row in rows:
            if device in row.pci:
                return _known(row, name)
    return _find_by_name(matrix, name) if name else None


def complete_gpu(matrix: Matrix, gpu: Gpu) -> Gpu:
    """Return the GPU with what the matrix knows of its model where it does not tell itself."""
    if gpu.compute_capability is not None and gpu.memory_total_bytes is not None:
        return gpu
    known = find_gpu(matrix, gpu.name, gpu.pci_id)
    if known is None:
        return gpu
    return replace(
        gpu,
        compute_capability=gpu.compute_capability or known.compute_capability,
        memory_total_bytes=gpu.memory_total_bytes or known.memory_bytes,
    )


def _find_by_name(matrix: Matrix, name: str) -> KnownGpu | None:
    """Take the longest known name in the given one; None where cards of unlike capability bear it."""
    named = matrix.cards.find_one(name)
    return _known(named.row, name) if named and named.row else None


@lru_cache(maxsize=4096)
def normalise_name(name: str) -> str:
    """Return a GPU's name in lower case without brand words, letters and digits kept apart by spaces."""
    text = _NOISE.sub(" ", name.lower().replace("-", " ").replace("_", " "))
    text = re.sub(r"\b(rtx|gtx|gt|rtxa|titan)\s*(?=\d)", r"\1 ", text)
    text = re.sub(r"(?<=\d)\s*(ti|super)\b", r" \1", text)
    return " ".join(text.split())


def _known(row: tables.GpuRow, name: str | None) -> KnownGpu:
    memory = _memory_gib(row, name or "")
    return KnownGpu(
        row.id,
        row.name,
        row.compute_capability,
        int(memory * GIB) if memory else None,
        row.processor,
        row.wheels,
    )


def _memory_gib(row: tables.GpuRow, name: str) -> float | None:
    """The size the name states, unless the row knows what the card really reports for that nominal size."""
    known = row.memory_gib
    stated = _STATED_MEMORY.search(name.lower())
    if stated is None:
        return known
    size = int(stated[1])
    if known and (abs(size - known) <= _NOMINAL_SHARE * size or f"{size}G" in row.name):
        return known
    return size


def capability_named(name: str) -> ComputeCapability | None:
    """Return the compute capability that `sm_90` or `9.0` stands for; None for a card's name."""
    text = name.strip().lower()
    if not re.fullmatch(r"(?:sm_|compute_)\d{2,3}[af]?|\d{1,2}\.\d", text):
        return None
    return ComputeCapability.parse(text)


def declared_gpu(matrix: Matrix, name: str, index: int = 0) -> Gpu:
    """Return the card that a person named: NVML's or the market's name, or `sm_89`.

    Raises InputError for a name that the matrix does not know.
    """
    from envdoctor.facts import Gpu

    if capability := capability_named(name):
        return Gpu(index, "--gpu", name=name, compute_capability=capability)
    known = find_gpu(matrix, name)
    if known is None:
        if named := matrix.cards.find(name):
            cards = " and ".join(dict.fromkeys(f"{r.name} ({r.compute_capability})" for r in named[0].rows))
            raise InputError(f"--gpu {name}: the name of several cards, {cards}")
        if _OTHERS.search(name):
            raise InputError(
                f"--gpu {name}: none of NVIDIA's cards, and what others run is not judged: leave --gpu out,"
                " and take torch from the index for it (uv pip install torch --torch-backend=auto)"
            )
        near = nearest(name, (_MAKERS.sub("", row.name) for row in matrix.rows(tables.GpuRow)))
        near = near or " (a name such as 'RTX 4090', or sm_89)"
        raise InputError(f"--gpu {name}: no such card in the matrix{near}")
    return Gpu(
        index,
        "--gpu",
        name=known.name,
        compute_capability=known.compute_capability,
        memory_total_bytes=known.memory_bytes,
    )


_FORM = re.compile(r"\d+ ?gb|\d+|gb|hbm\w*|pcie|sxm\d?|nvl|dgxs|fhhl|n|h|ls|s|v\d*")
"""Words of a name that tell an edition of a card and not another card."""


def edition_bytes(matrix: Matrix, gpu: Gpu) -> tuple[int, ...]:
    """Return the bytes of the card, or of each edition that its name may mean, the smallest first."""
    if gpu.memory_total_bytes:
        return (gpu.memory_total_bytes,)
    return tuple(int(size * GIB) for size in sorted(_sizes(matrix, gpu)))


def _sizes(matrix: Matrix, gpu: Gpu) -> set[float]:
    """The sizes of the card's editions in the matrix: the same words, and beside them only a form's."""
    base = normalise_name(gpu.name or "").split()
    found: set[float] = set()
    for row in matrix.rows(tables.GpuRow):
        words = normalise_name(row.name).split()
        rest = words[len(base) :]
        if base and words[: len(base)] == base and rest and all(_FORM.fullmatch(word) for word in rest):
            found |= {row.memory_gib} if row.memory_gib else set()
    return found
