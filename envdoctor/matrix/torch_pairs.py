"""Packages whose compiled code was built for one torch: curated pairs, and xformers' from its wheels."""

from __future__ import annotations

from packaging.version import Version

from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix
from envdoctor.values import dataclass

FLOOR_FROM = Version("0.0.35")
"""From this xformers on its wheels use torch's stable ABI, so that its torch is a floor."""


@dataclass(frozen=True, slots=True)
class TorchPair:
    """`versions` of a package fit `torch`; `soft` pairs lose features where others fail."""

    id: str
    package: str
    versions: str
    torch: str
    source: str
    cuda: str | None = None
    soft: bool = False


def pairs_of(matrix: Matrix, package: str) -> tuple[TorchPair, ...]:
    """Return the pairs of a package, oldest first; empty when none is recorded."""
    if package == "xformers":
        return _xformers_pairs(matrix)
    return tuple(
        TorchPair(row.id, package, row.versions, row.torch, row.source, soft=row.soft)
        for row in matrix.rows(tables.TorchPairRow)
        if row.package == package
    )


def _xformers_pairs(matrix: Matrix) -> tuple[TorchPair, ...]:
    releases = matrix.generated("xformers").get("releases", {})
    pairs = []
    for version in sorted(releases, key=Version):
        built = releases[version]
        torch = Version(built["torch"])
        spec = f">={torch.major}.{torch.minor}" if Version(version) >= FLOOR_FROM else f"=={torch.public}"
        identity = f"PAIR-XFORMERS-{version.upper()}"
        pairs.append(
            TorchPair(identity, "xformers", f"=={version}", spec, built["source"], cuda=built.get("cuda"))
        )
    return tuple(pairs)
