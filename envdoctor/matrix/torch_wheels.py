"""What torch's wheels were built for: the default index's, and the variants of PyTorch's own index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envdoctor.facts import CudaVersion
from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix
from envdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class TorchWheel:
    """A torch build: its CUDA (None for CPU) and the architectures it carries code for."""

    cuda: str | None
    arch_list: tuple[str, ...]
    source: str


def default_wheel(matrix: Matrix, version: str, arch: str = "x86_64") -> TorchWheel | None:
    """Return the default index's Linux wheel of that torch, or None when it is not recorded."""
    release = matrix.generated("torch").get("releases", {}).get(version)
    if not isinstance(release, dict):
        return None
    platform = release.get("platforms", {}).get(arch)
    chosen: Mapping[str, Any] = platform if isinstance(platform, dict) else release
    if arch != "x86_64" and not isinstance(platform, dict):
        return None
    return TorchWheel(chosen.get("cuda"), tuple(chosen.get("arch_list") or ()), str(chosen.get("source", "")))


def variant_arch_list(matrix: Matrix, version: str, cuda: str, arch: str = "x86_64") -> tuple[str, ...]:
    """Return the architectures of torch `version` built for `cuda`; empty when nobody recorded them."""
    wheel = default_wheel(matrix, version, arch)
    if wheel is not None and wheel.cuda == cuda:
        return wheel.arch_list
    tag = CudaVersion.parse(cuda).tag
    for row in matrix.rows(tables.TorchVariantRow):
        if row.variant == tag and row.arch == arch and _covers(row, version):
            return row.arch_list
    return ()


def _covers(row: tables.TorchVariantRow, version: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(row.torch).contains(version)
