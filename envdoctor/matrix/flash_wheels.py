"""flash-attn's prebuilt wheels: which release has one for which torch, interpreter and C library."""

from __future__ import annotations

from packaging.version import Version

from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix


def wheel_row(matrix: Matrix, version: Version) -> tables.FlashAttnWheelRow | None:
    """Return the row of that release of flash-attn, or None when its wheels are not recorded."""
    text = str(version.public)
    return next((row for row in matrix.rows(tables.FlashAttnWheelRow) if text in row.versions), None)


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
    rows = matrix.rows(tables.FlashAttnWheelRow)
    newest = max((Version(v) for row in rows for v in row.versions), default=None)
    fitting = [Version(v) for row in rows if _fits(row, torch, glibc, python, new_abi) for v in row.versions]
    if not fitting:
        return None
    lowest, highest = min(fitting), max(fitting)
    return f">={lowest}" if highest == newest else f">={lowest},<={highest}"


def _fits(
    row: tables.FlashAttnWheelRow,
    torch: Version,
    glibc: Version | None,
    python: Version | None,
    new_abi: bool,
) -> bool:
    minor = f"{torch.major}.{torch.minor}"
    return (
        minor in row.torch
        and (new_abi or minor not in row.mislabelled)
        and (glibc is None or glibc >= Version(row.glibc))
        and (python is None or _admits(row.python, f"{python.major}.{python.minor}"))
    )


def _admits(pythons: str, python: str) -> bool:
    from envdoctor.specifiers import SpecifierSet  # dear to load

    return SpecifierSet(pythons).contains(python)


def torch_range(row: tables.FlashAttnWheelRow) -> str:
    """Return the torch versions that a release has wheels for, as one range: `>=2.4,<2.9`."""
    minors = sorted(map(Version, row.torch))
    return f">={minors[0]},<{minors[-1].major}.{minors[-1].minor + 1}"
