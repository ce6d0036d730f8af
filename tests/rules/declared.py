"""Facts as a few words, and what the rules find in them."""

from __future__ import annotations

from collections.abc import Mapping

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import (
    ComputeCapability,
    CudaVersion,
    Distribution,
    Driver,
    DriverVersion,
    Environment,
    Facts,
    Gpu,
    Host,
    Observed,
    Setting,
    Symptom,
    Unknown,
)
from envdoctor.findings import Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def facts_of(
    *gpus: str,
    driver: str | None = None,
    driver_cuda: str | None = None,
    packages: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    symptoms: tuple[Symptom, ...] = (),
    python: str | None = None,
    glibc: str | None = None,
    arch: str | None = None,
    os: str | None = None,
    framework: str | None = None,
) -> Facts:
    """Return facts with GPUs by name, or by capability when written `sm_90`; `packages` by version."""
    return Facts(
        driver=Driver(
            version=Observed(DriverVersion.parse(driver), "declared") if driver else Unknown("not told"),
            cuda=Observed(CudaVersion.parse(driver_cuda), "declared") if driver_cuda else Unknown("not told"),
        ),
        gpus=Observed(tuple(map(_gpu, range(len(gpus)), gpus)), "declared") if gpus else Unknown("not told"),
        host=Host(
            glibc=Observed(glibc, "declared") if glibc else Unknown("not told"),
            arch=Observed(arch, "declared") if arch else Unknown("not told"),
            os=Observed(os, "declared") if os else Unknown("not told"),
        ),
        environment=Environment(
            python=Observed(python, "declared") if python else Unknown("not told"),
            distributions={n: Distribution(n, "declared", version=v) for n, v in (packages or {}).items()},
        ),
        settings=tuple(
            Setting(key, value, "declared", framework=framework) for key, value in (settings or {}).items()
        ),
        symptoms=symptoms,
    )


def _gpu(index: int, name: str) -> Gpu:
    if name.startswith("sm_"):
        return Gpu(index, "declared", compute_capability=ComputeCapability.parse(name))
    return Gpu(index, "declared", name=name)


def seen(identity: str, text: str = "the error line", **captured: str) -> Symptom:
    """Return a recognised error line."""
    return Symptom(identity, text, "log", captured)


def found(facts: Facts) -> dict[str, Finding]:
    """Return what the rules find, before the solver completes remedies, by id."""
    return {finding.id: finding for finding in diagnose_facts(facts, complete=False).findings}


def pasted(text: str) -> dict[str, Finding]:
    """Return what the rules find in a pasted text, by id."""
    matrix = load_matrix()
    return found(parse_paste(text, "", matrix.lexicon))


def errors(facts: Facts) -> list[str]:
    """Return the ids of the findings that are errors."""
    return [f.id for f in diagnose_facts(facts, complete=False).findings if f.severity is Severity.ERROR]


def pins(finding: Finding) -> list[dict[str, str]]:
    """Return the pins of each remedy, best first."""
    return [dict(remedy.pins) for remedy in finding.remedies]
