"""The figures that depend on versions and cards, read from the matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Constants:
    """Figures of one stack on one card; bytes unless said otherwise."""

    cublas_workspace: int = 32 * MIB
    cuda_context: int = 560 * MIB
    nccl_buffers: int = 600 * MIB
    loss_upcasts: int = 1  # 1 when the loss makes an fp32 copy of the logits
    reserved_slack: int = 64 * MIB
    reserved_factor_percent: int = 8
    vllm_context: int = 700 * MIB
    rows: tuple[str, ...] = ()


def read_constants(
    rows: tuple[Mapping[str, Any], ...],
    stack: Mapping[str, str] | None = None,
    capability: tuple[int, int] | None = None,
) -> Constants:
    """Pick from `[[memory]]` rows those that hold for these versions and this compute capability.

    A row whose condition names something that is not known does not hold; the last that holds wins.
    """
    known = {f.name for f in fields(Constants)} - {"rows"}
    chosen: dict[str, int] = {}
    used: dict[str, str] = {}
    for row in rows:
        if row.get("constant") in known and _holds(row.get("when", {}), stack or {}, capability):
            chosen[row["constant"]] = int(row["value"])
            used[row["constant"]] = row["id"]
    return Constants(**chosen, rows=tuple(sorted(used.values())))


def _holds(when: Mapping[str, str], stack: Mapping[str, str], capability: tuple[int, int] | None) -> bool:
    for name, wanted in when.items():
        if name == "compute_capability":
            if capability is None or Version("{}.{}".format(*capability)) not in SpecifierSet(wanted):
                return False
        elif name not in stack or not _within(stack[name], wanted):
            return False
    return True


def _within(version: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
