"""torch's builds: the default index's own and the variants of PyTorch's index, and what each runs on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from envdoctor.facts import ComputeCapability, CudaVersion
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.capabilities import runs_on
from envdoctor.matrix.driver_tables import least_driver, least_driver_row
from envdoctor.solve.target import Target
from envdoctor.solve.versions import satisfies

INDEX_URL = "https://download.pytorch.org/whl/"
OWN_RUNTIME = ("nvidia-", "cuda-")
"""Requirements of the default build that a variant replaces by those of its own CUDA."""


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a torch release. `variant` None is the default index's; `cuda` None is CPU only."""

    version: str
    variant: str | None
    cuda: CudaVersion | None
    arch_list: tuple[str, ...]
    source: str

    @property
    def label(self) -> str:
        """The build as a person names it: `2.14.0+cu126`, `2.15.0`."""
        return f"{self.version}+{self.variant}" if self.variant else self.version

    def runs_on(self, capability: ComputeCapability) -> bool:
        """True when the build has code for that capability."""
        return runs_on(self.arch_list, capability)


def builds_of(matrix: Matrix, versions: Iterable[str], target: Target) -> dict[str, list[Build]]:
    """Return the builds of each torch version on the target's platform, the default index's last (best)."""
    releases = matrix.generated("torch").get("releases", {})
    rows = [row for row in matrix.rows(tables.TorchVariantRow) if row.arch == target.platform.arch]
    if target.platform.os == "macos":
        rows = []
    return {version: _builds(version, releases.get(version, {}), rows, target) for version in versions}


def _builds(
    version: str, release: Mapping[str, Any], rows: Iterable[tables.TorchVariantRow], target: Target
) -> list[Build]:
    variants = [
        Build(version, row.variant, row.cuda, row.arch_list, row.source)
        for row in rows
        if satisfies(version, row.torch)
    ]
    own = release.get("platforms", {}).get(target.platform.arch, {}) if target.platform.os == "linux" else {}
    cuda = CudaVersion.parse(own["cuda"]) if own.get("cuda") else None
    default = Build(version, None, cuda, tuple(own.get("arch_list", ())), own.get("source", ""))
    same_cuda = [build for build in variants if build.cuda == cuda]
    return [*(build for build in reversed(variants) if build not in same_cuda), default]


def driver_allows(matrix: Matrix, cuda: CudaVersion, target: Target) -> bool:
    """True when the target's driver (if told) is at least the least one of that CUDA version."""
    row = least_driver_row(matrix, cuda)
    if target.driver is None or row is None:
        return True
    return target.driver >= least_driver(row, target.platform.os)


def followers(matrix: Matrix, mode: str) -> frozenset[str]:
    """Return the packages that take torch's variant (`same`) or exist only beside the default (`default`)."""
    return frozenset(row.name for row in matrix.rows(tables.TorchFollowerRow) if row.variant == mode)
