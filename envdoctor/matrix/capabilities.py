"""Which code runs on which GPU: architecture lists, and torch's official builds by capability."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor import lazy_re as re
from envdoctor.facts import ComputeCapability
from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix

_ENTRY = re.compile(r"(?:(sm|compute)_)?(\d{1,2})\.?(\d)([af]?)(\+ptx)?", re.IGNORECASE)


def runs_on(arch_list: Iterable[str], capability: ComputeCapability) -> bool:
    """True when code built for `arch_list` runs on that capability.

    Machine code (`sm_86`) runs on the same major with the same or a higher minor version; with `a` on that
    very capability, with `f` on its family; PTX (`compute_90`, `9.0+PTX`) on anything newer, compiled there.
    """
    return any(_entry_runs_on(entry, capability) for entry in arch_list)


def _entry_runs_on(entry: str, capability: ComputeCapability) -> bool:
    match = _ENTRY.fullmatch(entry.strip())
    if match is None:
        return False
    built = ComputeCapability(int(match[2]), int(match[3]))
    if (match[4] or "").lower() == "a":
        return built == capability
    binary = (match[1] or "sm").lower() == "sm" and built.major == capability.major
    ptx = (match[1] or "").lower() == "compute" or bool(match[5])
    return built <= capability and (binary or ptx)


def capability_row(matrix: Matrix, capability: ComputeCapability) -> tables.TorchCapabilityRow | None:
    """Return torch's row for that capability: the highest of the same major not above it."""
    rows = matrix.rows(tables.TorchCapabilityRow)
    lower = [r for r in rows if r.capability.major == capability.major and r.capability <= capability]
    return max(lower, key=lambda row: row.capability, default=None)


def generation(matrix: Matrix, capability: ComputeCapability) -> str:
    """Return the architecture's name: `Turing` for 7.5."""
    rows = matrix.rows(tables.ArchitectureRow)
    return next((row.name for row in rows if capability in row.capabilities), "an unknown architecture")
