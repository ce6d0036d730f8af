"""Whom a package was written for: what its extras pin, held against what is installed beside it.

A server or trainer names the releases of its companions in extras that no installer checks afterwards. Where
code fails between packages, a companion outside of that range is the first to suspect.
"""

from __future__ import annotations

from collections.abc import Iterator

from envdoctor import lazy_re as re
from envdoctor.commands import install_commands
from envdoctor.facts import Distribution, ErrorSeen
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.snapshot import STACK
from envdoctor.rules.calendar import package_facts, told_release
from envdoctor.rules.foreign import foreign_backend
from envdoctor.rules.generations import asking_package
from envdoctor.rules.recorded import Demand
from envdoctor.rules.view import View
from envdoctor.values import dataclass, replace

ID = "WRITTEN-FOR-ANOTHER"
_TORCHS = ("torch", "triton", "nvidia-")
"""What is of torch itself, which other rules compare."""
COMPANIONS = 6
"""How many companions are named."""
LOOKED = 60
"""Later releases that are looked through for one that takes what is there."""
_MISFITS = re.compile(r"(?:Attribute|Type|Name|Import|ModuleNotFound|UnboundLocal|Key|Index|Runtime)Error$")
_INTERFACE = re.compile(
    r"argument|attribute|import|module|not defined|unpack|signature|schema|operator|subscriptable|"
    r"callable|op\b"
)
"""Words of errors that come of code which calls what another release has."""
_NOBODYS = re.compile(r"dev|test|doc|lint|quality|build|ci|bench")
"""Extras of those who work on a package."""
_OF_A_BACKEND = re.compile(
    r"cpu|hip|rocm|amd|hpu|habana|gaudi|xpu|intel|openvino|ipex|nncf|neural-compressor|ipu|graphcore|"
    r"furiosa|npu|musa|neuron|tpu|mps|apple|metal"
)
"""Extras for accelerators other than CUDA's, as their makers and optimum's partners call them."""


@dataclass(frozen=True, slots=True)
class _Unmet:
    """What one package's extra asks of another that is at another release; `called` by the error itself."""

    by: Distribution
    extra: str
    demand: Demand
    other: Distribution
    called: int

    @property
    def release(self) -> str:
        """What is told of the other's release."""
        return self.other.told


def written_for_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return which companion is of another release than the one that a package was written for."""
    misfit = _MISFITS.search(error.exception or "") and _INTERFACE.search(error.text)
    if not misfit or view.recorded is None:
        return None
    unmet = max(_unmet(view, error), key=lambda one: one.called, default=None)
    if unmet is None:
        return None
    by, demand, other = unmet.by, unmet.demand, unmet.other
    pins = {other.name: demand.specifier}
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{told_release(view, by.name)} is written for {other.name}{demand.specifier}, and"
        f" {unmet.release} is installed: {error.text[:240]}",
        cause=f"The metadata of {by.name} {by.version} name that range under its extra “{unmet.extra}”,"
        f" which no installer holds on to. Another release of {other.name} has other names, arguments and"
        " operators.",
        evidence=(
            Evidence("error", error.text, error.source),
            Evidence(other.name, unmet.release, other.source),
            Evidence(by.name, by.version or "", by.source),
        ),
        remedies=(
            Remedy(
                f"Install the {other.name} that {by.name} {by.version} names.", install_commands(pins), pins
            ),
            *_raised(view, unmet),
        ),
        certainty=Certainty.LIKELY if unmet.called > 1 else Certainty.UNCERTAIN,
        sources=(f"wheel:{by.name}-{by.version}",),
        explains=error.symptoms,
        prior=0.6,
    )


def companions_finding(view: View, error: ErrorSeen) -> Finding | None:
    """Return what a package is released with, where its own code calls what the facts do not tell of."""
    misfit = _MISFITS.search(error.exception or "") and _INTERFACE.search(error.text)
    name = asking_package(view, error.frames[-1]) if misfit and error.frames else ""
    by = view.facts.environment.distributions.get(name)
    if by is None or view.recorded is None or name not in STACK or name == "torch":
        return None
    demands = list(view.recorded.demands(by, tuple(_extras(view, by))))
    exact = ((one.name, one.specifier) for one in demands if one.specifier.startswith("=="))
    pins = {other: specifier for other, specifier in exact if not other.startswith(_TORCHS)}
    if not pins:
        return None
    listed = ", ".join(f"{other}{specifier}" for other, specifier in list(pins.items())[:COMPANIONS])
    return Finding(
        id=ID,
        severity=Severity.ERROR,
        summary=f"{told_release(view, name)} is released with {listed}: another release of one of them may be"
        f" imported: {error.text[:240]}",
        cause=f"{name} calls these packages by their names and arguments of that release; one that is older"
        f" or newer is a mismatch (an upgrade of one alone, or a source tree of {name} that is newer than the"
        " packages that were installed with it).",
        evidence=(Evidence("error", error.text, error.source), Evidence(name, by.version or "", by.source)),
        remedies=(
            Remedy(
                f"Install what {name} {by.version} names, or reinstall {name} with its extras from the tree"
                " that runs, which upgrades them.",
                install_commands(pins),
                pins,
            ),
        ),
        certainty=Certainty.UNCERTAIN,
        sources=(f"wheel:{name}-{by.version}",),
        explains=error.symptoms,
        prior=0.3,
    )


def _unmet(view: View, error: ErrorSeen) -> Iterator[_Unmet]:
    """Yield what the extras of the packages that the error may come from ask for and do not get."""
    frames = {asking_package(view, frame) for frame in error.frames} - {""}
    listed = view.facts.environment.distributions
    for by in listed.values():
        if by.name not in STACK or by.name == "torch" or (frames and by.name not in frames):
            continue
        for extra in _extras(view, by):
            for demand in view.recorded.demands(by, (extra,)) if view.recorded else ():
                other = listed.get(demand.name)
                if other is not None and demand.specifier and not demand.is_met_by(other):
                    called = (other.name in frames) + (by.name in frames or not frames)
                    yield _Unmet(by, extra, demand, other, called)


def _extras(view: View, by: Distribution) -> list[str]:
    package = package_facts(view, by.name)
    place = package.position.get(by.version or "") if package else None
    if package is None or place is None:
        return []
    row = package.row_of(place)
    foreign = foreign_backend(view) is not None
    told = sorted(extra for extra in package.extras(row) if not _NOBODYS.search(extra)) if row >= 0 else []
    return [extra for extra in told if bool(_OF_A_BACKEND.search(extra)) == foreign]


def _raised(view: View, unmet: _Unmet) -> Iterator[Remedy]:
    """Offer the lowest later release of the asking package whose extra takes what is installed."""
    by, other = unmet.by, unmet.other
    package = package_facts(view, by.name)
    place = package.position.get(by.version or "") if package else None
    for version in package.versions[place + 1 : place + 1 + LOOKED] if package and place is not None else ():
        later = view.recorded.demands(replace(by, version=version), (unmet.extra,)) if view.recorded else ()
        asked = [one for one in later if one.name == other.name]
        final = package is not None and not package.prereleases >> package.position[version] & 1
        if final and asked and all(one.is_met_by(other) for one in asked):
            pins = {by.name: f">={version}"}
            text = f"Or upgrade {by.name}: {version} takes {other.name} {unmet.release}."
            yield Remedy(text, install_commands(pins), pins)
            return
    yield Remedy(f"Or upgrade {by.name} to a release that was written for {other.name} {unmet.release}.")
