"""What is compiled against torch where it is installed, and wheels that spare it: flash-attn's, one a torch.

Its project publishes them beside the index, and its setup fetches the one that fits. Beside another torch an
installation takes an hour, and a CUDA toolkit.
"""

from __future__ import annotations

from envdoctor.facts import CudaVersion
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.flash_wheels import installs, is_for
from envdoctor.matrix.snapshot import Package
from envdoctor.target.resolve import Target

FLASH_ATTN = "flash-attn"


def rows_for(matrix: Matrix, target: Target) -> list[tables.FlashAttnWheelRow]:
    """Return the rows of wheels that install on the target."""
    platform, python = target.platform, target.python_minor
    if platform.os != "linux" or platform.arch != "x86_64" or platform.libc != "glibc":
        return []
    from packaging.version import Version  # dear to load, and hardly a request needs it

    libc = Version(".".join(map(str, platform.libc_version)))
    return [row for row in matrix.rows(tables.FlashAttnWheelRow) if installs(row, libc, python)]


def versions_of(package: Package, row: tables.FlashAttnWheelRow) -> int:
    """Return the releases that a row tells of, as a mask of their places."""
    return sum(1 << place for place, version in enumerate(package.versions) if version in row.versions)


def fits(row: tables.FlashAttnWheelRow, torch: str, cuda: CudaVersion | None) -> bool:
    """True for a torch of a minor version, and of a CUDA, that wheels were built for."""
    from packaging.version import Version

    majors = {told.split(".")[0] for told in row.cuda}
    return is_for(row, Version(torch)) and (cuda is None or str(cuda.major) in majors)


def seen_by_build(matrix: Matrix, package: Package, place: int, sources: bool) -> tuple[str, ...] | None:
    """Return what a release's build is known to need beyond what it asks for; None for one with a wheel.

    Of torch that is the one that it shall run with. Where no `sources` are allowed, but ready wheels take the
    place of a build, others have one.
    """
    on_torch = any(row.package == package.name for row in matrix.rows(tables.TorchBuildRow))
    if not (on_torch or sources) or package.has_wheel(package.set_of(place)):
        return None
    return ("torch",) if on_torch else ()
