"""Builds of torch for a CUDA that PyTorch's own index does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from packaging.version import Version

from envdoctor import lazy_re as re
from envdoctor.commands import commands
from envdoctor.facts import CudaVersion
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.calendar import package_facts
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.view import View

_OLDEST_RECORDED = CudaVersion(11, 8)
_FAILED = ("SYM-NO-MATCHING", "SYM-NO-VERSION-FOUND")
_NAMED = "SYM-LOCAL-VERSION-PIP"
"""An installer's line that names a release with its variant, `torch==2.0.1+cu121`."""


def check_variant_index(view: View) -> Iterable[Finding]:
    """Find a CUDA variant of torch that PyTorch's own index does not have for that release."""
    told = view.facts.symptoms
    seen = [s for s in told if s.id in _FAILED and s.captured.get("name") == "torch"]
    seen = seen or [s for s in told if s.id == _NAMED and s.captured.get("package") == "torch"]
    asked = [s.captured["variant"] for s in view.facts.symptoms if s.id == "SYM-INDEX-VARIANT"]
    if not seen:
        raise Skip("no failed installation of torch was pasted")
    release, local = _asked(seen[0].captured)
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
            *_other_releases(view, version, variant),
            Remedy(
                "Let uv choose by the driver.",
                commands("uv pip install torch=={} --torch-backend=auto", version.public),
            ),
        ),
        certainty=Certainty.CERTAIN,
        sources=("https://github.com/pytorch/pytorch/blob/main/RELEASE.md",),
        explains=(seen[0].id, _NAMED),
        prior=0.9,
    )


def _asked(told: Mapping[str, str]) -> tuple[str, str]:
    """Return the release and the variant that a line says were asked for; empty where it does not."""
    if "variant" in told:
        return told["version"], told["variant"]
    release, _, local = told.get("specifier", "").removeprefix("==").partition("+")
    return release, local


def _other_releases(view: View, version: Version, variant: str) -> Iterator[Remedy]:
    """Offer the nearest later releases that PyTorch's index has in that variant."""
    package = package_facts(view, "torch")
    later = (Version(one) for one in package.versions) if package else ()
    having = (v for v in later if v > version and not v.is_prerelease and variant in variants_of(view, v))
    if first := next(having, None):
        minor = f"{first.major}.{first.minor}"
        yield Remedy(
            f"Or the {variant} build of a later release: the first that has one is {first}.",
            commands(
                "pip install torch=={}.* --index-url https://download.pytorch.org/whl/{}", minor, variant
            ),
            {"torch": f"=={minor}.*"},
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
