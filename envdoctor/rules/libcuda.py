"""The driver's user libraries and a container's CUDA against the kernel module of the host."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.facts import CudaVersion, DriverVersion, Observed, Toolkit
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.driver_tables import branch_ceiling, ceiling_allows, least_driver, least_driver_row
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.view import View, cards

CONTAINER_IMAGE = "container image"
COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"
_DESKTOP = ("geforce", "titan", "gtx", "laptop")


def check_user_library(view: View) -> Iterable[Finding]:
    """A libcuda of another version than the kernel module: lent by a package, or an update half done."""
    module, library = view.facts.driver.version, view.facts.driver.user_version
    if not isinstance(module, Observed) or not isinstance(library, Observed):
        raise Skip("the versions of the kernel module and of libcuda are not both told")
    if _same(module.value, library.value):
        return
    evidence = (
        Evidence("kernel module", str(module.value), module.source),
        Evidence("libcuda", str(library.value), library.source),
    )
    if library.value > module.value:
        yield _compatibility_finding(view, evidence)
    else:
        yield _stale_library_finding(evidence)


def _same(one: DriverVersion, other: DriverVersion) -> bool:
    shared = min(len(one.parts), len(other.parts))
    return one.parts[:shared] == other.parts[:shared]


def _compatibility_finding(view: View, evidence: tuple[Evidence, ...]) -> Finding:
    desktop = [g for g in view.gpus.get() or () if any(word in (g.name or "").lower() for word in _DESKTOP)]
    return Finding(
        id="DRIVER-FORWARD-COMPATIBILITY",
        severity=Severity.ERROR if desktop else Severity.NOTE,
        summary="libcuda is newer than the kernel module: forward compatibility (cuda-compat) is in use"
        + (", which this card does not support (error 804)." if desktop else "."),
        cause="A cuda-compat package, often of a container image, lends a newer libcuda. NVIDIA supports it "
        "on data-centre GPUs, some RTX servers and Jetson, not on GeForce. After an update without a reboot "
        "the same picture shows.",
        evidence=(*evidence, *cards(desktop)),
        remedies=(
            Remedy("Update the driver of the host (or reboot, if it was just updated)."),
            Remedy(
                "Use an image with a CUDA that the driver runs, or take /usr/local/cuda/compat off its path."
            ),
        ),
        certainty=Certainty.LIKELY if desktop else Certainty.CERTAIN,
        rows=("DRIVER-ERROR-804",),
        sources=(COMPATIBILITY,),
    )


def _stale_library_finding(evidence: tuple[Evidence, ...]) -> Finding:
    return Finding(
        id="DRIVER-USER-LIBRARY-OLD",
        severity=Severity.WARNING,
        summary="libcuda is older than the loaded kernel module: CUDA may answer with error 803.",
        cause="Two drivers are installed side by side, or a container brings a libcuda of its own.",
        evidence=evidence,
        remedies=(Remedy("Find the second copy and remove it.", ("ldconfig -p | grep libcuda",)),),
        certainty=Certainty.LIKELY,
        rows=("DRIVER-ERROR-803",),
        sources=(COMPATIBILITY,),
    )


def check_container_cuda(view: View) -> Iterable[Finding]:
    """A container image made for a CUDA major version that the host's driver does not run."""
    images = [t for t in view.facts.toolkits.get() or () if t.path == CONTAINER_IMAGE]
    version = view.driver().get()
    ceiling = view.facts.driver.cuda.get() or (branch_ceiling(view.matrix, version) if version else None)
    if not images or ceiling is None:
        raise Skip("the CUDA of a container image, or the driver's, is not told")
    row = least_driver_row(view.matrix, images[0].version)
    if row is not None and not ceiling_allows(ceiling, images[0].version):
        least = least_driver(row, view.facts.host.os.get())
        yield _image_finding(images[0], ceiling, least, row.id, row.source)


def _image_finding(
    image: Toolkit, ceiling: CudaVersion, least: DriverVersion, row: str, source: str
) -> Finding:
    return Finding(
        id="DRIVER-CONTAINER-IMAGE",
        severity=Severity.WARNING,
        summary=f"The container image is for CUDA {image.version}; the host's driver runs CUDA {ceiling}.",
        cause=f"A container uses its host's driver; CUDA {image.version.major}.x needs {least} or newer.",
        evidence=(
            Evidence("container image's CUDA", str(image.version), image.source),
            Evidence("driver's highest CUDA", str(ceiling), "driver"),
        ),
        remedies=(
            Remedy(
                f"Update the driver of the host to {least} or newer.", (), {"nvidia-driver": f">={least}"}
            ),
            Remedy(f"Use an image for CUDA {ceiling.major}.x."),
        ),
        certainty=Certainty.LIKELY,
        rows=(row,),
        sources=(source,),
        follows=("DRIVER-TOO-OLD",),
    )


RULES = (
    Rule("DRIVER-USER-LIBRARY", "libcuda and the kernel module are of one version", check_user_library),
    Rule("DRIVER-CONTAINER-IMAGE", "The driver runs the CUDA of the container image", check_container_cuda),
)
