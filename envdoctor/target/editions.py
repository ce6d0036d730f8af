"""The memory of a card that is sold in several sizes: the smallest, so that what fits it fits all."""

from __future__ import annotations

from envdoctor import lazy_re as re
from envdoctor.facts import Gpu
from envdoctor.facts.quantities import GIB
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.gpus import normalise_name

_FORM = re.compile(r"\d+ ?gb|\d+|gb|hbm\w*|pcie|sxm\d?|nvl|dgxs|fhhl|n|h|ls|s|v\d*")
"""Words of a name that tell an edition of a card and not another card."""


def smallest_edition(matrix: Matrix, gpu: Gpu) -> tuple[int | None, str]:
    """Return the card's bytes, None when they are not known, and what was taken for granted."""
    if gpu.memory_total_bytes:
        return gpu.memory_total_bytes, ""
    sizes = _sizes(matrix, gpu)
    if not sizes:
        return None, ""
    smallest = min(sizes)
    known = " and ".join(f"{size:g}" for size in sorted(sizes))
    note = f"{gpu.name} is sold with {known} GiB: taken as the smallest; name it with its size to change that"
    return int(smallest * GIB), note if len(sizes) > 1 else ""


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
