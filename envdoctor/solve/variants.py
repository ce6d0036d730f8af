"""torch's builds: the default index's own and the variants of PyTorch's index, and what each runs on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from envdoctor.facts import ComputeCapability, CudaVersion
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.driver_tables import branch_ceiling, least_driver, least_driver_row
from envdoctor.matrix.torch_wheels import capability_row, runs_on
from envdoctor.solve.versions import satisfies, spec_mask
from envdoctor.target.resolve import Target
from envdoctor.values import dataclass

INDEX_URL = "https://download.pytorch.org/whl/"
_MACHINES = {"AMD64": "x86_64", "ARM64": "aarch64"}
"""Windows' names of machines; PyTorch's tables of architectures are the same for Linux and Windows on x86."""
OWN_RUNTIME = ("nvidia-", "cuda-")
"""Requirements of the default build that a variant replaces by those of its own CUDA."""


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a torch release. `variant` None is the default index's; `cuda` None is CPU only."""

    version: str
    variant: str | None
    cuda: CudaVersion | None
    arch_list: tuple[str, ...] | None
    """None: what its wheel holds is not recorded."""
    source: str
    meant: CudaVersion | None = None
    """The CUDA that the release is made for, whatever this build holds: its default one on x86_64 Linux."""

    @property
    def label(self) -> str:
        """The build as a person names it: `2.14.0+cu126`, `2.15.0`."""
        return f"{self.version}+{self.variant}" if self.variant else self.version

    def answers(self, label: str) -> bool:
        """True when this is the build that a local label means."""
        return label in (self.variant, self.cuda.tag if self.cuda and not self.variant else None)

    def runs_on(self, capability: ComputeCapability, matrix: Matrix) -> bool:
        """True when the build has code for that capability: by its wheel, else as releases tell."""
        if self.arch_list is not None:
            return runs_on(self.arch_list, capability)
        row = capability_row(matrix, capability)
        return row is not None and satisfies(self.version, row.builds if self.variant else row.default)


def builds_of(
    matrix: Matrix, versions: Sequence[str], target: Target, labels: Collection[tuple[str, str]] = ()
) -> dict[str, list[Build]]:
    """Return the builds of each torch version on the target's platform, the default index's last (best).

    `versions` are sorted. `labels` are versions with the local label that was asked for: such a build is
    there, recorded or not.
    """
    releases = matrix.generated("torch").get("releases", {})
    arch = _MACHINES.get(target.platform.arch, target.platform.arch)
    rows = [row for row in matrix.rows(tables.TorchVariantRow) if row.arch == arch]
    if target.platform.os == "macos":
        rows = []
    fitting = [(row, spec_mask(row.torch, versions)) for row in rows]
    ceiling = branch_ceiling(matrix, target.driver) if target.driver else None
    builds = {}
    for place, version in enumerate(versions):
        own = [row for row, mask in fitting if mask >> place & 1]
        builds[version] = _builds(version, releases.get(version), own, target, ceiling)
    for version, label in labels:
        if version in builds and not any(build.answers(label) for build in builds[version]):
            builds[version].insert(0, _labelled(version, label))
    return builds


def cuda_of_label(label: str) -> CudaVersion | None:
    """Return the CUDA that a local label names (`cu118`); None for another."""
    return CudaVersion.parse(label) if re.fullmatch(r"cu\d{2,3}", label) else None


def _labelled(version: str, label: str) -> Build:
    """Return a build of which nothing but its label is known."""
    cuda = cuda_of_label(label)
    return Build(version, label, cuda, () if label == "cpu" else None, "the label asked for")


def _builds(
    version: str,
    release: Mapping[str, Any] | None,
    rows: Iterable[tables.TorchVariantRow],
    target: Target,
    ceiling: CudaVersion | None,
) -> list[Build]:
    """Return a release's builds, the best last: the default, then what the driver itself has (`ceiling`).

    Of those the nearest to the CUDA that the release is made for: others are built for that one.
    """
    meant = CudaVersion.parse(release["cuda"]) if release and release.get("cuda") else None
    variants = [Build(version, row.variant, row.cuda, row.arch_list, row.source, meant) for row in rows]
    linux = target.platform.os == "linux"
    own = (release or {}).get("platforms", {}).get(target.platform.arch, {}) if linux else {}
    cuda = CudaVersion.parse(own["cuda"]) if own.get("cuda") else None
    told = release is not None or not linux or target.platform.arch != "x86_64"
    archs = tuple(own.get("arch_list", ())) if told else None
    default = Build(version, None, cuda, archs, own.get("source", ""), meant)

    def merit(build: Build) -> tuple[bool, int]:
        assert build.cuda is not None
        native = ceiling is None or build.cuda <= ceiling
        return native, -_apart(build.cuda, meant) if meant else 0

    others = [build for build in reversed(variants) if build.cuda != cuda or cuda is None]
    return [*sorted(others, key=merit), default]


def _apart(cuda: CudaVersion, other: CudaVersion) -> int:
    return abs((cuda.major - other.major) * 100 + cuda.minor - other.minor)


def driver_allows(matrix: Matrix, cuda: CudaVersion, target: Target) -> bool:
    """True when the target's driver (if told) is at least the least one of that CUDA version."""
    row = least_driver_row(matrix, cuda)
    if target.driver is None or row is None:
        return True
    return target.driver >= least_driver(row, target.platform.os)


def followers(matrix: Matrix, mode: str) -> frozenset[str]:
    """Return the packages that take torch's variant (`same`) or exist only beside the default (`default`)."""
    return frozenset(row.name for row in matrix.rows(tables.TorchFollowerRow) if row.variant == mode)
