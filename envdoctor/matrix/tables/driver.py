"""Rows about NVIDIA's driver."""

from typing import Annotated, ClassVar, Literal

from envdoctor.facts import CudaVersion, DriverVersion
from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Capability, Row, fact


@fact
class CudaDriverRow(Row):
    """The least driver of a CUDA version."""

    KIND: ClassVar = "cuda_driver"

    cuda: CudaVersion
    """From this version on, until the next row's."""
    linux: DriverVersion
    """On Linux."""
    windows: DriverVersion
    """On Windows."""


@fact
class DriverArchitectureRow(Row):
    """The driver branches that know an architecture."""

    KIND: ClassVar = "driver_architecture"

    compute_capability: Capability
    """From this one on, until the next row's."""
    first_branch: int
    """The first branch."""
    last_branch: int | None = None
    """The last one, where it ended."""


@fact
class DriverBranchRow(Row):
    """A branch of the driver: the CUDA it brings, and how long it is mended."""

    KIND: ClassVar = "driver_branch"

    branch: int
    """The first number of its versions."""
    cuda: CudaVersion
    """The highest CUDA that it runs."""
    designation: Literal["new-feature", "production", "long-term"]
    """What NVIDIA calls it."""
    end_of_life: Annotated[str, forms.MONTH] | None = None
    """The month of its last fixes, where it is told."""
