"""NVIDIA's driver as the matrix knows it: least drivers of CUDA versions, and driver branches."""

from __future__ import annotations

from envdoctor.facts import ComputeCapability, CudaVersion, DriverVersion
from envdoctor.matrix import tables
from envdoctor.matrix.load import Matrix

FIRST_MINOR_COMPATIBLE = 11
"""From CUDA 11 on, any minor version runs on the least driver of its major version."""


def least_driver_row(matrix: Matrix, cuda: CudaVersion) -> tables.CudaDriverRow | None:
    """Return the row of the least driver for `cuda`; None for a CUDA older than the table."""
    rows = (row for row in matrix.rows(tables.CudaDriverRow) if row.cuda <= cuda)
    return max(rows, key=lambda row: row.cuda, default=None)


def least_driver(row: tables.CudaDriverRow, os: str | None) -> DriverVersion:
    """Return the least driver version of a row for that operating system (Linux unless `windows`)."""
    return row.windows if os == "windows" else row.linux


def ceiling_allows(ceiling: CudaVersion, needed: CudaVersion) -> bool:
    """True when a driver whose highest CUDA is `ceiling` runs what was built with `needed`."""
    if needed.major >= FIRST_MINOR_COMPATIBLE:
        return ceiling.major >= needed.major
    return ceiling >= needed


def branch_row(matrix: Matrix, driver: DriverVersion) -> tables.DriverBranchRow | None:
    """Return the row of the driver's branch: the newest recorded one not above it."""
    rows = (row for row in matrix.rows(tables.DriverBranchRow) if row.branch <= driver.branch)
    return max(rows, key=lambda row: row.branch, default=None)


def branch_ceiling(matrix: Matrix, driver: DriverVersion) -> CudaVersion | None:
    """Return the highest CUDA that the driver's branch brings."""
    row = branch_row(matrix, driver)
    return row.cuda if row else None


def architecture_row(matrix: Matrix, capability: ComputeCapability) -> tables.DriverArchitectureRow | None:
    """Return the row of first and last branch for that capability: the nearest not above it."""
    rows = (row for row in matrix.rows(tables.DriverArchitectureRow) if row.compute_capability <= capability)
    return max(rows, key=lambda row: row.compute_capability, default=None)
