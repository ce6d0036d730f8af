"""flash-attn's prebuilt wheels: which release has one for which torch, interpreter and C library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix

if TYPE_CHECKING:
    from packaging.version import Version


def wheel_row(matrix: Matrix, version: Version) -> tables.FlashAttnWheelRow | None:
    """Return the row of that release of flash-attn, or None when its wheels are not recorded."""
    text = str(version.public)
    return next((row for row in matrix.rows(tables.FlashAttnWheelRow) if text in row.versions), None)


def newest_row(matrix: Matrix) -> tables.FlashAttnWheelRow | None:
    """Return the row of the newest release whose wheels are recorded; None where none is."""
    from packaging.version import Version  # dear to load

    rows = matrix.rows(tables.FlashAttnWheelRow)
    return max(rows, key=lambda row: max(map(Version, row.versions)), default=None)


def releases_for(
    matrix: Matrix,
    torch: Version,
    glibc: Version | None = None,
    python: Version | None = None,
    new_abi: bool = False,
) -> str | None:
    """Return the range of releases that have a wheel for that torch's minor version; None without one.

    `new_abi` for a torch of a minor version that is split, built with the new C++ ABI.
    """
    from packaging.version import Version

    rows = matrix.rows(tables.FlashAttnWheelRow)
    newest = max((Version(v) for row in rows for v in row.versions), default=None)
    minor = f"{python.major}.{python.minor}" if python else ""
    installing = (row for row in rows if installs(row, glibc, minor))
    fitting = [Version(v) for row in installing if is_for(row, torch, new_abi) for v in row.versions]
    if not fitting:
        return None
    lowest, highest = min(fitting), max(fitting)
    return f">={lowest}" if highest == newest else f">={lowest},<={highest}"


def is_for(row: tables.FlashAttnWheelRow, torch: Version, new_abi: bool = False) -> bool:
    """True for a torch of a minor version that wheels were built for, and load beside."""
    minor = f"{torch.major}.{torch.minor}"
    return minor in row.torch and (new_abi or minor not in row.mislabelled)


def installs(row: tables.FlashAttnWheelRow, glibc: Version | None, python: str) -> bool:
    """True where wheels install on a C library and a minor version of Python, as far as these are told."""
    from packaging.version import Version

    if glibc is not None and glibc < Version(row.glibc):
        return False
    if not python:
        return True
    from envdoctor.specifiers import SpecifierSet  # dear to load

    return SpecifierSet(row.python).contains(python)


def torch_range(row: tables.FlashAttnWheelRow) -> str:
    """Return the torch versions that a release has wheels for, as one range: `>=2.4,<2.9`."""
    from packaging.version import Version

    minors = sorted(map(Version, row.torch))
    return f">={minors[0]},<{minors[-1].major}.{minors[-1].minor + 1}"
