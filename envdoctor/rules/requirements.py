"""What the stack's installed distributions require of one another, by their own metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envdoctor.errors import Unavailable
from envdoctor.facts import Distribution, Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.matrix.stack import STACK
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.rows import install_commands
from envdoctor.rules.view import View

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_EXACT_ABI = frozenset({"torchvision", "torchaudio", "vllm", "xformers", "sglang"})
"""Compiled against one torch: another one breaks them."""
_CHECKED_AT_IMPORT = frozenset({"tokenizers", "huggingface-hub", "safetensors", "numpy", "regex", "pyyaml"})
"""transformers looks at these versions when it is imported, and refuses."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that the environment does not meet; `other` None: not installed at all."""

    by: Distribution
    requirement: Requirement
    other: Distribution | None


def check_requirements(view: View) -> Iterable[Finding]:
    """Find what distributions of the stack require and do not get."""
    distributions = view.facts.environment.distributions
    judged = [d for name, d in distributions.items() if name in STACK and d.version]
    if not judged:
        raise Skip("no version of the stack is told")
    for distribution in judged:
        for unmet in find_unmet(view, distribution):
            yield _finding(unmet)


def find_unmet(view: View, distribution: Distribution) -> Iterator[Unmet]:
    """Yield the requirements of one distribution that are missing or at another version."""
    environment = _marker_environment(view)
    for line in distribution.requires or _recorded_requirements(view, distribution):
        requirement = _parse(line)
        if requirement is None or (requirement.marker and not requirement.marker.evaluate(environment)):
            continue
        other = view.facts.distribution(normalise(requirement.name))
        if other is None:
            if view.facts.environment.complete:
                yield Unmet(distribution, requirement, None)
        elif not _meets(other, requirement):
            yield Unmet(distribution, requirement, other)


def _recorded_requirements(view: View, distribution: Distribution) -> list[str]:
    """Return the unconditional requirements that the release is recorded with, for what was only listed."""
    version = parse_version(distribution.version or "")
    try:
        snapshot = load_snapshot(view.matrix.folder)
    except Unavailable:
        return []
    package = snapshot.package(distribution.name)
    if package is None or version is None or version.public not in package.position:
        return []
    row = package.raw["r"][package.position[version.public]]
    if row < 0:
        return []
    found = [(r, snapshot.package(r.name)) for r in package.requirements(row) if r.marker < 0]
    return [f"{r.name}{required.spec_text(r.spec)}" for r, required in found if required]


def _parse(line: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _meets(other: Distribution, requirement: Requirement) -> bool:
    version = parse_version(other.version) if other.version else None
    return version is None or version_satisfies(version, str(requirement.specifier))


def _marker_environment(view: View) -> dict[str, str]:
    python = view.facts.environment.python.get() or "3.11"
    system = view.facts.host.os.get() or "linux"
    return {
        "extra": "",
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": python,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "nt" if system == "windows" else "posix",
        "sys_platform": {"windows": "win32", "macos": "darwin"}.get(system, "linux"),
        "platform_system": {"windows": "Windows", "macos": "Darwin"}.get(system, "Linux"),
        "platform_machine": view.facts.host.arch.get() or "x86_64",
        "platform_release": "",
        "platform_version": "",
        "implementation_version": python,
    }


def _finding(unmet: Unmet) -> Finding:
    name = normalise(unmet.requirement.name)
    wanted = f"{name}{unmet.requirement.specifier}"
    owner = f"{unmet.by.name} {unmet.by.version or ''}".strip()
    shown = [Evidence(unmet.by.name, f"{owner} requires {wanted}", unmet.by.source)]
    if unmet.other is None:
        state, fact = "is not installed", Evidence(name, "not installed", "the whole list of distributions")
    else:
        state = f"is at {unmet.other.version}"
        fact = Evidence(name, unmet.other.version or "", unmet.other.source)
    pins: dict[str, str] = {name: str(unmet.requirement.specifier) or ">=0"}
    return Finding(
        id="REQUIREMENT-UNMET",
        severity=Severity.ERROR if _is_fatal(unmet, name) else Severity.WARNING,
        summary=f"{owner} requires {wanted}, which {state}",
        cause=f"The metadata of {owner} states the requirement; "
        + (
            "without it importing or using the package fails."
            if unmet.other is None
            else "it was built for that."
        ),
        evidence=(*shown, fact),
        remedies=(Remedy(f"Install what {unmet.by.name} requires.", install_commands(pins), pins),),
        sources=(f"wheel:{unmet.by.name}-{unmet.by.version}",),
        follows=(f"{unmet.by.name.upper()}-{name.upper()}", f"{unmet.by.name.upper()}-MINIMUM"),
    )


def _is_fatal(unmet: Unmet, name: str) -> bool:
    """Missing requirements fail at import, but for CUDA's wheels, which a system's own may replace."""
    if unmet.other is None:
        return not name.startswith(("nvidia-", "cuda-", "triton"))
    if unmet.by.name in _EXACT_ABI:
        return name == "torch" and not _is_same_minor(unmet)
    return unmet.by.name == "transformers" and name in _CHECKED_AT_IMPORT


def _is_same_minor(unmet: Unmet) -> bool:
    """True when another patch release of the wanted minor is installed: its symbols are the same."""
    installed = parse_version(unmet.other.version) if unmet.other and unmet.other.version else None
    exact = [parse_version(s.version) for s in unmet.requirement.specifier if s.operator == "=="]
    return installed is not None and any(v and v.release[:2] == installed.release[:2] for v in exact)


_REFUSALS = ("SYM-REQUIRED-VERSION", "SYM-PLEASE-INSTALL", "SYM-ERROR-REQUIRES", "SYM-MINIMUM-VERSION")


def check_refusals(view: View) -> Iterable[Finding]:
    """Find the versions that a library itself refused, by its own message."""
    seen = [s for s in view.facts.symptoms if s.id in _REFUSALS and _specifier(s)]
    if not seen:
        raise Skip("no library refused another's version")
    for symptom in {s.captured["name"].lower(): s for s in reversed(seen)}.values():
        name = normalise(symptom.captured["name"])
        have = parse_version(symptom.captured.get("found", "")) or view.version(name)
        if have is None or not version_satisfies(have, _specifier(symptom)):
            yield _refusal(name, str(have) if have else None, symptom)


def _specifier(symptom: Symptom) -> str:
    """The versions asked for; empty where the message holds none that can be read."""
    least = symptom.captured.get("least")
    text = f">={least}" if least else symptom.captured.get("specifier", "").replace(" ", "").rstrip(".,")
    text = f"={text}" if text.startswith("=") and not text.startswith("==") else text
    try:
        return str(SpecifierSet(text))
    except InvalidSpecifier:
        return ""


def _refusal(name: str, have: str | None, symptom: Symptom) -> Finding:
    wanted = _specifier(symptom)
    by_transformers = symptom.id == "SYM-REQUIRED-VERSION"
    asker = "the installed transformers" if by_transformers else "the library that raises the error"
    pins = {name: wanted}
    other = (Remedy("Or raise transformers, which then takes it.", ("pip install -U transformers",)),)
    return Finding(
        id="REQUIREMENT-REFUSED",
        severity=Severity.ERROR,
        summary=f"{asker} needs {name}{wanted}" + (f"; {name} {have} is installed" if have else ""),
        cause=(
            "transformers compares the versions of a few libraries with its own table when it is imported."
            if by_transformers
            else f"The message names the releases of {name} that the code was written for."
        ),
        evidence=(Evidence(symptom.id, symptom.text, symptom.source),),
        remedies=(
            Remedy(f"Install a release of {name} in that range.", install_commands(pins), pins),
            *(other if by_transformers else ()),
        ),
        certainty=Certainty.CERTAIN if have else Certainty.LIKELY,
        sources=("https://github.com/huggingface/transformers/blob/main/src/transformers/utils/versions.py",),
        explains=(symptom.id,),
        prior=0.9,
    )


RULES = (
    Rule("REQUIREMENT-REFUSED", "no library refused the version of another", check_refusals),
    Rule(
        "REQUIREMENT-UNMET",
        "each distribution of the stack finds what its metadata requires",
        check_requirements,
    ),
)
