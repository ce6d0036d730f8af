"""Rows about torch's builds."""

from typing import Annotated, ClassVar, Literal

from envdoctor.facts import CudaVersion
from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Bound, Capability, Package, Row, fact

Arch = Literal["x86_64", "aarch64"]
Variant = Annotated[str, forms.VARIANT]


@fact
class TorchCapabilityRow(Row):
    """Which releases of torch hold code for a compute capability."""

    KIND: ClassVar = "torch_capability"

    capability: Capability
    """This one, and higher minor ones of the same major until the next row's."""
    builds: Bound
    """Releases of which some official build holds code."""
    default: Bound
    """Releases whose default wheels do."""
    advice: Bound | None = None
    """Releases to advise instead of `default`."""
    cuda_least: CudaVersion | None = None
    """The first CUDA that compiles for it."""
    cuda_below: CudaVersion | None = None
    """The first CUDA that no longer does."""
    variant: Variant | None = None
    """A variant that holds code where the default wheels do not."""
    variant_torch: Bound = "*"
    """The releases of which that variant exists."""
    arch: Arch | None = None
    """The machine on which such cards are."""


@fact
class TorchFollowerRow(Row):
    """A package whose wheels follow torch's variant, or are built for the CUDA of its default wheels."""

    KIND: ClassVar = "torch_follower"

    name: Package
    """The package."""
    variant: Literal["same", "default"]
    """`same`: it has the variants of torch; `default`: it fits the default wheels and a later CUDA."""


@fact
class TorchPlatformRow(Row):
    """Which releases of torch have CUDA wheels on a kind of machine."""

    KIND: ClassVar = "torch_platform"

    arch: Arch
    """The machine."""
    cuda_since: Bound
    """Releases whose default wheels have CUDA; those before are CPU builds."""


@fact
class TorchVariantRow(Row):
    """A variant of PyTorch's own index."""

    KIND: ClassVar = "torch_variant"

    variant: Variant
    """Its tag."""
    cuda: CudaVersion
    """Its CUDA."""
    torch: Bound
    """The releases of torch that have it."""
    arch: Arch
    """On which machine."""
    arch_list: tuple[Annotated[str, forms.SM], ...]
    """The architectures it holds code for."""
