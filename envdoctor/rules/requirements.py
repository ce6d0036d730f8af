"""What the stack's installed distributions require of one another, by their own metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envdoctor.facts import Distribution, Symptom
from envdoctor.facts.names import normalise
from envdoctor.findings import Certainty, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import tables
from envdoctor.matrix.interface_records import load_record
from envdoctor.matrix.stack import STACK
from envdoctor.rules.base import Rule, Skip
from envdoctor.rules.ranges import parse_version, version_satisfies
from envdoctor.rules.recorded import recorded_requirements
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
    """Find what distributions of the stack require and do not get, each such distribution once."""
    distributions = view.facts.environment.distributions
    judged = [d for name, d in distributions.items() if name in STACK and d.version]
    if not judged:
        raise Skip("no version of the stack is told")
    unmet: dict[str, list[Unmet]] = {}
    for distribution in judged:
        for one in find_unmet(view, distribution):
            unmet.setdefault(normalise(one.requirement.name), []).append(one)
    for name, group in unmet.items():
        yield _finding(view, name, sorted(group, key=lambda one: not _is_fatal(one, name)))


def find_unmet(view: View, distribution: Distribution) -> Iterator[Unmet]:
    """Yield the requirements of one distribution that are missing or at another version."""
    environment = _marker_environment(view)
    for line in distribution.requires or recorded_requirements(view, distribution):
        requirement = _parse(line)
        if requirement is None or (requirement.marker and not requirement.marker.evaluate(environment)):
            continue
        other = view.facts.distribution(normalise(requirement.name))
        if other is None:
            if view.complete:
                yield Unmet(distribution, requirement, None)
        elif not _meets(other, requirement):
            yield Unmet(distribution, requirement, other)


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


def _finding(view: View, name: str, group: Sequence[Unmet]) -> Finding:
    """Return one finding of a distribution that several others ask for; the gravest demand speaks first."""
    first = group[0]
    state = "is not installed" if first.other is None else f"is at {first.other.version}"
    pins = {name: _joined_specifier(group)}
    owners = [_owner(one.by) for one in group]
    return Finding(
        id="REQUIREMENT-UNMET",
        severity=_severity(view, first, name),
        summary=f"{owners[0]} requires {_wanted(name, first)}, which {state}"
        + (f"; {_counted(owners[1:])} too" if owners[1:] else ""),
        cause=f"The metadata of {owners[0]} states the requirement; "
        + ("without it what needs it fails." if first.other is None else "it was built for that."),
        evidence=(
            *(
                Evidence(one.by.name, f"{_owner(one.by)} requires {_wanted(name, one)}", one.by.source)
                for one in group
            ),
            _state(name, first.other),
        ),
        remedies=(Remedy(f"Install the {name} that is required.", install_commands(pins), pins),),
        sources=(f"wheel:{first.by.name}-{first.by.version}",),
        follows=(f"{first.by.name.upper()}-{name.upper()}", f"{first.by.name.upper()}-MINIMUM"),
    )


def _owner(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version or ''}".strip()


def _wanted(name: str, unmet: Unmet) -> str:
    return f"{name}{unmet.requirement.specifier}"


def _counted(owners: Sequence[str]) -> str:
    return owners[0] if len(owners) == 1 else f"{len(owners)} others ask for it"


def _joined_specifier(group: Sequence[Unmet]) -> str:
    """Return what all of them take together."""
    joined = SpecifierSet()
    for one in group:
        joined &= one.requirement.specifier
    return str(joined) or ">=0"


def _state(name: str, other: Distribution | None) -> Evidence:
    if other is None:
        return Evidence(name, "not installed", "the whole list of distributions")
    return Evidence(name, other.version or "", other.source)


def _severity(view: View, unmet: Unmet, name: str) -> Severity:
    if unmet.other is None and _never_imports(view, unmet.by, name):
        return Severity.NOTE
    return Severity.ERROR if _is_fatal(unmet, name) else Severity.WARNING


def _never_imports(view: View, by: Distribution, name: str) -> bool:
    """True when the recorded files of that release import nothing of the distribution without a guard."""
    record, version = load_record(view.matrix.folder, by.name), parse_version(by.version or "")
    if record is None or version is None or not record.members:
        return False
    roots = {r.module for r in view.matrix.rows(tables.ImportNameRow) if r.distribution == name}
    roots |= {name.replace("-", "_")}
    asked = (
        spans
        for module, names in record.imports.items()
        if module.partition(".")[0] in roots
        for spans in names.values()
    )
    return not any(record.has(spans, version) for spans in asked)


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
