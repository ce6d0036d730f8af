"""Rows about packages with compiled code of their own."""

from typing import Annotated, ClassVar, Literal

from envdoctor.matrix import forms
from envdoctor.matrix.tables.row import Bound, Capability, Package, Row, SymptomGlob, Text, fact

Minor = Annotated[str, forms.MINOR]


@fact
class ExtensionRow(Row):
    """A package compiled against torch, known by its libraries in an error line."""

    KIND: ClassVar = "extension"

    package: Package
    """The package."""
    libraries: tuple[str, ...]
    """Paths of its libraries, `*` for any letters."""
    rebuild: str
    """The command that builds or installs it anew; empty for one that has ended and is built no more."""
    owner: Package | None = None
    """The package that it is made for, whose releases name it and their torch."""
    optional_for: tuple[Package, ...] = ()
    """Packages that import it wherever it is installed, and go on without it where it is not."""


@fact
class TorchSymbolRow(Row):
    """Symbols that tell which torch a binary was built against."""

    KIND: ClassVar = "torch_symbol"

    symbols: tuple[str, ...]
    """Mangled names, `*` for any letters."""
    torch: Bound
    """The releases that have them."""
    cxx11_abi: bool | None = None
    """The C++ ABI that they tell, instead of the release."""


@fact
class TorchPairRow(Row):
    """Releases of a package that were built for releases of torch."""

    KIND: ClassVar = "torch_pair"

    package: Package
    """The package."""
    versions: Bound
    """Its releases."""
    torch: Bound
    """torch's."""
    soft: bool = False
    """True: beside another torch it loses features and does not fail."""


@fact
class CompanionRow(Row):
    """A package with compiled code of its own: how it stands to the torch beside it."""

    KIND: ClassVar = "companion"

    package: Package
    """The package."""
    of_torch: bool = False
    """True where PyTorch publishes it beside each torch, on the same index."""
    strict: bool = False
    """True where it breaks beside a torch of another minor version."""
    moves_torch: bool = False
    """True where the release that its mere name installs may be made for another torch, or bring it along."""
    kernels: bool = False
    """True where it launches kernels of its own, which may lack a card's architecture."""
    signatures: tuple[SymptomGlob, ...] = ()
    """Lines by which it tells that another torch stands beside it."""
    may_say: tuple[SymptomGlob, ...] = ()
    """Lines that another torch is one cause of."""
    ends_in: tuple[SymptomGlob, ...] = ()
    """Lines in which a run ends that one of its signatures announced."""


@fact
class FlashAttnWheelRow(Row):
    """What the prebuilt wheels of some releases of flash-attn fit."""

    KIND: ClassVar = "flash_attn_wheel"

    versions: tuple[Annotated[str, forms.VERSION], ...]
    """The releases."""
    torch: tuple[Minor, ...]
    """Minor versions of torch that have a wheel."""
    cuda: tuple[Annotated[str, forms.VERSION], ...]
    """The CUDA versions that wheels were built with."""
    python: Bound
    """The interpreters."""
    glibc: Minor
    """The least C library."""
    arch_list: tuple[Annotated[str, forms.SM], ...]
    """The architectures compiled."""
    mislabelled: tuple[Minor, ...] = ()
    """Those of `torch` whose wheels for the old C++ ABI were built with the new one, and do not load."""


@fact
class TorchBuildRow(Row):
    """A package whose setup compiles against torch: it must see the torch that it shall run with."""

    KIND: ClassVar = "torch_build"

    package: Package
    """The package."""
    declared: bool = False
    """True where its build asks for a torch, and in isolation gets the newest that this admits."""


@fact
class DeepspeedCudaRow(Row):
    """CUDA versions among which DeepSpeed's builder lets a toolkit differ from torch's."""

    KIND: ClassVar = "deepspeed_cuda"

    deepspeed: Bound
    """Its releases."""
    cuda: Bound
    """The CUDA versions that pass for one another."""


@fact
class PackageCapabilityRow(Row):
    """The least compute capability that releases of a package have kernels for."""

    KIND: ClassVar = "package_capability"

    package: Package
    """Whose kernels."""
    versions: Bound
    """Its releases."""
    capability: Capability
    """The least that they run on."""
    because: Text
    """Why."""


@fact
class CudaBuildRow(Row):
    """A package whose installation compiles CUDA code where no ready wheel is taken."""

    KIND: ClassVar = "cuda_build"

    package: Package
    """The package."""
    repository: Text
    """What the URL of its repository holds."""
    on_index: bool
    """True where the index has no wheels of it, so that its mere name is compiled, too; false where it has
    nothing of it, whatever else goes by its name there."""
    imports_torch: bool
    """True where its build imports torch and does not require it."""
    without_nvcc: Literal["fails", "wheel", "cpu"]
    """Without nvcc: it fails, it fails unless its builder finds a ready wheel, it is built for the CPU."""


@fact
class BuildLibraryRow(Row):
    """A library that builds from source look for, by the names that they ask for it."""

    KIND: ClassVar = "build_library"

    what: Text
    """What people call it."""
    headers: tuple[Text, ...] = ()
    """Headers of its, `*` for any letters."""
    libraries: tuple[Text, ...] = ()
    """Names that a linker is given (`-lNAME`), `*` for any letters."""
    packages: tuple[Text, ...] = ()
    """Names by which CMake, pkg-config and Rust's crates ask for it, in any letters; `*` for any."""
    symbols: tuple[Text, ...] = ()
    """Names that it exports, mangled or as a linker tells them, `*` for any letters."""
    commands: tuple[Text, ...]
    """What installs it for building, one way each, the best first."""
    note: Text | None = None
    """What else is to be known."""
