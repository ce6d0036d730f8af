"""Which code runs on which GPU: architecture lists, and torch's official builds by capability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from envdoctor.facts import ComputeCapability
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


def capability_row(matrix: Matrix, capability: ComputeCapability) -> Mapping[str, Any] | None:
    """Return torch's row for that capability: the highest of the same major not above it."""
    rows = [row for row in matrix.rows("torch_capability") if _covers(row, capability)]
    return max(rows, key=lambda row: ComputeCapability.parse(row["capability"]), default=None)


def _covers(row: Mapping[str, Any], capability: ComputeCapability) -> bool:
    built = ComputeCapability.parse(row["capability"])
    return built.major == capability.major and built <= capability


def generation(capability: ComputeCapability) -> str:
    """Return the architecture's name: `Turing` for 7.5."""
    exact = {(7, 5): "Turing", (8, 9): "Ada"}
    by_major = {3: "Kepler", 5: "Maxwell", 6: "Pascal", 7: "Volta", 8: "Ampere", 9: "Hopper"}
    if name := exact.get((capability.major, capability.minor)):
        return name
    return by_major.get(capability.major, "Blackwell")
