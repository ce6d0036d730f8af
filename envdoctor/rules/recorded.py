"""What a release is recorded to require, for distributions of which a paste tells the version only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from envdoctor import lazy_re as re
from envdoctor.errors import Unavailable
from envdoctor.facts import Distribution, Facts
from envdoctor.matrix import Matrix
from envdoctor.matrix.markers import decide
from envdoctor.matrix.snapshot import Package, Requirement, Snapshot, load_snapshot
from envdoctor.rules.ranges import parse_specifier, parse_version, range_satisfies, version_satisfies
from envdoctor.values import NamedTuple, replace

FEW = 3
SHARE = 0.04
"""How many of the distributions that a whole environment asks for may be missing: it is broken, not cut."""
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
"""What is taken for possible where it is not told: a requirement counts that holds on all."""
ON_LINUX_ALONE = ("triton", "nvidia-nccl", "nvidia-nvshmem", "uvloop")
"""Distributions that are installed on no other system."""
OF_A_BUILD = ("nvidia-", "cuda-", "triton", "pytorch-triton")
"""What torch's builds for different CUDA versions require differently."""


class Demand(NamedTuple):
    """What one distribution asks of another: a range of versions, and extras of it."""

    name: str
    specifier: str
    extras: tuple[str, ...] = ()

    def is_met_by(self, other: Distribution) -> bool:
        """True unless the version, or the minor that is told in its place, is outside of the range."""
        if not other.version and other.specifier.endswith(".*"):
            return range_satisfies(other.specifier, self.specifier) is not False
        return not (other.version and self.specifier) or _meets(other.version, self.specifier)


@cache
def _meets(text: str, specifier: str) -> bool:
    """Compare as PEP 440 does: a pre-release is older than its release.

    But for a build of one's own (NGC's torch 2.6.0a0+ecf3bae), which stands where the release would.
    """
    version = parse_version(text)
    if version is None or not version.is_prerelease or (version.pre and version.local):
        return version is None or version_satisfies(version, specifier)
    return parse_specifier(specifier).contains(version)


VARIANT = re.compile(r"(?:cu\d|cpu|rocm|xpu|pt\d|torch\d)")
"""How the local labels begin that name a variant of the published release."""


class Recorded:
    """The requirements of the releases that are listed, as the package facts have them."""

    def __init__(self, facts: Facts, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._environments = list(marker_environments(facts, self._machine(facts)))
        self._markers: dict[int, bool] = {-1: True}

    def _machine(self, facts: Facts) -> str | None:
        """Return the machine that is told, or the only one on which torch asks for what is listed."""
        torch, told = facts.distribution("torch"), facts.host.arch.get()
        if told or torch is None:
            return told
        release = replace(torch, version=(torch.version or "").partition("+")[0])
        listed, asked = facts.environment.distributions.keys(), {}
        for machine in MACHINES:
            self._environments, self._markers = list(marker_environments(facts, machine)), {-1: True}
            asked[machine] = {demand.name for demand in self.demands(release)} & listed
        self._markers = {-1: True}
        most = max(MACHINES, key=lambda machine: len(asked[machine]))
        return most if any(len(asked[m]) < len(asked[most]) for m in MACHINES) else None

    def demands(self, distribution: Distribution, extras: tuple[str, ...] = ()) -> Iterator[Demand]:
        """Yield what a release asks for wherever it may be installed; nothing where that is not recorded.

        What is recorded is of the index's file: another build of the release has libraries of its own.
        """
        package: Package | None = self._snapshot.package(distribution.name)
        version = parse_version(distribution.version or "")
        if package is None or version is None or version.public not in package.position:
            return
        if version.local and not VARIANT.match(version.local):
            return  # another build altogether, with metadata of its own
        row = package.row_of(package.position[version.public])
        other = version.local is not None or (distribution.origin or "index") != "index"
        for extra in ("", *extras) if row >= 0 else ():
            for one in package.requirements(row, extra):
                required = self._snapshot.package(one.name)
                if required and self._holds(one) and not (other and one.name.startswith(OF_A_BUILD)):
                    yield Demand(one.name, required.spec_text(one.spec), one.extras)

    def _holds(self, requirement: Requirement) -> bool:
        number = requirement.marker
        if number not in self._markers:
            tree = self._snapshot.marker(number)
            self._markers[number] = all(decide(tree, environment) for environment in self._environments)
        return self._markers[number]


def read_recorded(facts: Facts, matrix: Matrix) -> Recorded | None:
    """Return the recorded requirements for an environment; None where the package facts are missing."""
    try:
        return Recorded(facts, load_snapshot(matrix.folder))
    except Unavailable:
        return None


def is_closed(facts: Facts, recorded: Recorded | None) -> bool:
    """True when a listing holds nearly all that its members require, as an excerpt does not."""
    if recorded is None:
        return False
    listed = facts.environment.distributions
    asked = {demand.name for d in listed.values() for demand in recorded.demands(d)}
    missing = {name for name in asked if name not in listed and not name.startswith(OF_A_BUILD)}
    return bool(asked) and len(missing) <= max(FEW, SHARE * len(asked))


def marker_environments(facts: Facts, machine: str | None = None) -> Iterator[Mapping[str, str]]:
    """Yield the environments in which markers are decided: one where Python, system and machine are told."""
    python, machine = facts.environment.python.get(), machine or facts.host.arch.get()
    system = facts.host.os.get()
    listed = facts.environment.distributions
    if system is None and any(name.startswith(ON_LINUX_ALONE) for name in listed):
        system = "linux"
    for name in (system,) if system else ("linux", "windows"):
        for version in (python,) if python else PYTHONS:
            for arch in (machine,) if machine else MACHINES:
                yield _environment(name, version, arch)


def _environment(system: str, python: str, machine: str) -> Mapping[str, str]:
    return {
        "extra": "",
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": python,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "nt" if system == "windows" else "posix",
        "sys_platform": {"windows": "win32", "macos": "darwin"}.get(system, "linux"),
        "platform_system": {"windows": "Windows", "macos": "Darwin"}.get(system, "Linux"),
        "platform_machine": machine,
        "platform_release": "",
        "platform_version": "",
        "implementation_version": python,
    }
