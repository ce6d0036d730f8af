"""Choosing among torch's releases and variants by the CUDA that a driver runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from packaging.version import Version

from envdoctor.facts import ComputeCapability, CudaVersion
from envdoctor.matrix import tables
from envdoctor.matrix.driver_tables import ceiling_allows
from envdoctor.matrix.load import Matrix
from envdoctor.matrix.torch_wheels import default_wheel, runs_on


def torch_releases(matrix: Matrix) -> Iterator[tuple[Version, Mapping[str, Any]]]:
    """Yield the recorded releases of torch, oldest first."""
    releases = matrix.generated("torch").get("releases", {})
    for version in sorted(releases, key=Version):
        yield Version(version), releases[version]


def default_wheels_below(matrix: Matrix, ceiling: CudaVersion, arch: str) -> str | None:
    """Return the first torch (`2.11`) whose default wheels need more than that ceiling of the driver.

    None when every recorded release for that processor fits, or none does.
    """
    some_fit = False
    for version, _ in torch_releases(matrix):
        wheel = default_wheel(matrix, str(version), arch)
        if wheel is None or (wheel.cuda and ceiling_allows(ceiling, CudaVersion.parse(wheel.cuda))):
            some_fit |= wheel is not None
        elif some_fit:
            return f"{version.major}.{version.minor}"
    return None


def newest_variant(
    matrix: Matrix, ceiling: CudaVersion, capabilities: Sequence[ComputeCapability], arch: str
) -> tables.TorchVariantRow | None:
    """Return the row of the newest CUDA variant that the driver and all the GPUs run, or None."""
    rows = [
        row
        for row in matrix.rows(tables.TorchVariantRow)
        if row.arch == arch
        and row.variant.startswith("cu")
        and ceiling_allows(ceiling, row.cuda)
        and all(runs_on(row.arch_list, capability) for capability in capabilities)
    ]
    return max(rows, key=_reach, default=None)


def _reach(row: tables.TorchVariantRow) -> tuple[Version, CudaVersion]:
    from envdoctor.specifiers import SpecifierSet

    versions = [clause.version.removesuffix(".*") for clause in SpecifierSet(row.torch)]
    return max(map(Version, versions), default=Version("0")), row.cuda
