"""A torch that is asked for by a range: what an installer takes of it, against the driver and the cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.version import Version

from envdoctor.commands import commands, install_commands
from envdoctor.facts import ComputeCapability, CudaVersion, Distribution, Observed
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.driver_tables import branch_ceiling, ceiling_allows
from envdoctor.matrix.torch_builds import newest_variant, torch_releases
from envdoctor.matrix.torch_wheels import TorchWheel, default_wheel, runs_on
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import version_satisfies
from envdoctor.rules.view import View, card

ID = "TORCH-ASKED-UNFIT"
_FILE = "requirements"
"""How the source of what a file asks for begins: that is what will be installed, not what is there."""


def check_asked_torch(view: View) -> Iterable[Finding]:
    """Releases that a range admits, of which none, or not the newest, runs on this driver and these cards."""
    asked = view.facts.distribution("torch")
    if asked is None or asked.version or "cuda" in view.torch_build:
        raise Skip("no range of torch alone is asked for")
    if not asked.specifier and not asked.source.startswith(_FILE):
        raise Skip("no range of torch alone is asked for")
    ceiling, capabilities = _ceiling(view), _capabilities(view)
    if (ceiling is None and not capabilities) or view.facts.host.os.get() not in (None, "linux"):
        raise Skip("the driver and the cards are not told, or the default wheels there hold no CUDA")
    wheels = _wheels(view, asked.specifier)
    if not wheels:
        raise Skip("no release that the range admits is on record")
    why = {name: _unfit(wheel, ceiling, capabilities) for name, wheel in wheels.items()}
    newest = list(wheels)[-1]
    if why[newest] and (all(why.values()) or asked.source.startswith(_FILE)):
        yield _finding(view, asked, why, wheels[newest].source)


def _ceiling(view: View) -> CudaVersion | None:
    driver, version = view.facts.driver, view.facts.driver.version.get()
    return branch_ceiling(view.matrix, version) if version else driver.cuda.get()


def _capabilities(view: View) -> list[ComputeCapability]:
    return [gpu.compute_capability for gpu in view.gpus.get() or () if gpu.compute_capability]


def _wheels(view: View, specifier: str) -> dict[str, TorchWheel]:
    """Return the default index's wheels that a range admits, oldest first, by release."""
    arch = view.facts.host.arch.get() or "x86_64"
    releases = (v for v, _ in torch_releases(view.matrix) if version_satisfies(v, specifier))
    found = ((str(version), default_wheel(view.matrix, str(version), arch)) for version in releases)
    return {version: wheel for version, wheel in found if wheel and wheel.cuda}


def _unfit(wheel: TorchWheel, ceiling: CudaVersion | None, capabilities: list[ComputeCapability]) -> str:
    """Return why a wheel does not run here; empty where it may."""
    if ceiling and wheel.cuda and not ceiling_allows(ceiling, CudaVersion.parse(wheel.cuda)):
        return f"it is built for CUDA {wheel.cuda}, and the driver runs CUDA {ceiling} at most"
    lacking = [one for one in capabilities if wheel.arch_list and not runs_on(wheel.arch_list, one)]
    return f"it holds no code for compute capability {lacking[0]}" if lacking else ""


def _finding(view: View, asked: Distribution, why: dict[str, str], source: str) -> Finding:
    newest, everyone = list(why)[-1], all(why.values())
    driver = view.facts.driver.version
    told = [Evidence("driver", str(driver.value), driver.source)] if isinstance(driver, Observed) else []
    return Finding(
        id=ID,
        severity=Severity.ERROR if everyone else Severity.WARNING,
        summary=f"torch{asked.specifier} does not run here as the default index has it: "
        + ("none that this admits does" if everyone else f"an installer takes {newest}")
        + f"; {why[newest]}",
        cause="Of a range an installer takes the newest release, for it knows of no driver and no card.",
        evidence=(
            Evidence("torch", f"{asked.specifier} (asked for)", asked.source),
            *told,
            *(card(gpu) for gpu in view.gpus.get() or () if gpu.compute_capability),
        ),
        remedies=tuple(_remedies(view, asked.specifier, why)),
        certainty=Certainty.LIKELY,
        sources=(source,) if source else (),
        prior=0.9,
    )


def _remedies(view: View, specifier: str, why: dict[str, str]) -> Iterator[Remedy]:
    fitting = [version for version, reason in why.items() if not reason]
    if fitting:
        pins = {"torch": f"{specifier},<={fitting[-1]}".lstrip(",")}
        yield Remedy(f"Take {fitting[-1]}, the newest of them that runs here.", install_commands(pins), pins)
    ceiling, arch = _ceiling(view), view.facts.host.arch.get() or "x86_64"
    variant = newest_variant(view.matrix, ceiling, _capabilities(view), arch) if ceiling else None
    built = [one for one in why if variant and version_satisfies(Version(one), variant.torch)]
    if variant and built:
        yield Remedy(
            f"Take the {variant.variant} build of {built[-1]}, and its companions alike.",
            commands("uv pip install {} --torch-backend={}", f"torch=={built[-1]}", variant.variant),
        )


RULES = (
    Rule(ID, "a torch that is asked for by a range runs on the driver and the cards", check_asked_torch),
)
