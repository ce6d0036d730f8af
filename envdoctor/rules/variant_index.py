"""Builds of torch for a CUDA that PyTorch's own index does not have."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import CudaVersion
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View

_OLDEST_RECORDED = CudaVersion(11, 8)
_FAILED = ("SYM-NO-MATCHING", "SYM-NO-VERSION-FOUND")


def check_variant_index(view: View) -> Iterable[Finding]:
    """Find a CUDA variant of torch that PyTorch's own index does not have for that release."""
    seen = [s for s in view.facts.symptoms if s.id in _FAILED and s.captured.get("name") == "torch"]
    asked = [s.captured["variant"] for s in view.facts.symptoms if s.id == "SYM-INDEX-VARIANT"]
    if not seen:
        raise Skip("no failed installation of torch was pasted")
    release, _, local = seen[0].captured.get("specifier", "").removeprefix("==").partition("+")
    variant = local or (asked[0] if asked else "")
    version = parse_version(release)
    if not re.fullmatch(r"cu\d{3}", variant) or version is None:
        raise Skip("no release and variant were asked for")
    offered = variants_of(view, version)
    if variant in offered or not offered or CudaVersion.parse(variant) < _OLDEST_RECORDED:
        return
    newest = max(offered, key=CudaVersion.parse)
    yield Finding(
        id="TORCH-VARIANT-NONE",
        severity=Severity.ERROR,
        summary=f"PyTorch publishes no {variant} build of torch {version}: there are {', '.join(offered)}",
        cause="Each torch release is built for two or three CUDA versions; any driver at least as new runs "
        "them, and the toolkit installed on the machine need not be the same.",
        evidence=(Evidence(seen[0].id, seen[0].text, seen[0].source),),
        remedies=(
            Remedy(
                f"Install the {newest} build.",
                commands(
                    "pip install torch=={} --index-url https://download.pytorch.org/whl/{}",
                    version.public,
                    newest,
                ),
                {"torch": f"=={version.public}"},
            ),
            Remedy(
                "Let uv choose by the driver.",
                commands("uv pip install torch=={} --torch-backend=auto", version.public),
            ),
        ),
        certainty=Certainty.CERTAIN,
        sources=("https://github.com/pytorch/pytorch/blob/main/RELEASE.md",),
        explains=(seen[0].id,),
        prior=0.9,
    )


def variants_of(view: View, version: Version) -> list[str]:
    """Return the CUDA variants in which PyTorch's index has a release of torch, oldest first."""
    rows = view.matrix.rows(tables.TorchVariantRow)
    found = {row.variant for row in rows if version_satisfies(version, row.torch)}
    return sorted((name for name in found if name.startswith("cu")), key=CudaVersion.parse)


RULES = (
    Rule(
        "TORCH-VARIANT-NONE", "PyTorch's index has the CUDA variant that was asked for", check_variant_index
    ),
)
