"""Rows that name cards and architectures."""

from typing import Annotated, ClassVar

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Capability, Row, Text, fact


@fact
class ArchitectureRow(Row):
    """The compute capabilities of an architecture."""

    KIND: ClassVar = "architecture"

    name: Text
    """What NVIDIA calls it."""
    capabilities: tuple[ComputeCapability, ...]
    """All that cards have; other rows may name no other."""


@fact
class GpuRow(Row):
    """A card by its names and PCI device ids; of two with one name the first stands for it."""

    KIND: ClassVar = "gpu"

    name: Text
    """As NVML reports it."""
    compute_capability: Capability
    """The chip's."""
    memory_gib: float | None = None
    """What NVML reports (ECC taken off where it is on), else nominal; none where a name has several sizes."""
    pci: tuple[Annotated[str, forms.PCI], ...] = ()
    """Device ids."""
    aliases: tuple[str, ...] = ()
    """Names of the market and of people."""
