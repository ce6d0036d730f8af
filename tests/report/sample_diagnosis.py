"""One diagnosis with all that a report must show: a root cause, its consequence, doubt, a broken check."""

from __future__ import annotations

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
)
from envdoctor.findings import (
    Certainty,
    CheckResult,
    Diagnosis,
    Evidence,
    Finding,
    Outcome,
    Remedy,
    Severity,
)

ARCH = Finding(
    id="TORCH-ARCH",
    severity=Severity.ERROR,
    summary="torch 2.6.0+cu124 has no kernels for the NVIDIA GeForce RTX 5090 (sm_120).",
    cause="The wheel was built for sm_50 to sm_90; a card of sm_120 needs one built with CUDA 12.8 or newer.",
    evidence=(
        Evidence("torch", "2.6.0+cu124", "requirements.txt, line 12"),
        Evidence("GPU", "NVIDIA GeForce RTX 5090", "nvidia-smi, line 9"),
    ),
    remedies=(
        Remedy(
            "Install a build for CUDA 12.8.",
            ("pip install 'torch>=2.7' --index-url …/cu128",),
            {"torch": ">=2.7"},
        ),
        Remedy("Build torch from source with TORCH_CUDA_ARCH_LIST=12.0."),
    ),
    rows=("torch-arch-2.6",),
    sources=("wheel:torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl",),
)
BNB = Finding(
    id="BNB-BINARY",
    severity=Severity.ERROR,
    summary="bitsandbytes falls back to its CPU library.",
    cause="No CUDA device is usable while torch has no kernels for it.",
    certainty=Certainty.LIKELY,
    consequence_of="TORCH-ARCH",
)
SHM = Finding(
    id="HOST-SHM",
    severity=Severity.WARNING,
    summary="/dev/shm has 64 MiB.",
    cause="DataLoader workers and NCCL pass tensors through shared memory.",
    certainty=Certainty.UNCERTAIN,
    remedies=(Remedy("Start the container with more.", ("docker run --shm-size=16g …",)),),
)
FACTS = Facts(
    origin="paste",
    driver=Driver(
        version=Observed(DriverVersion.parse("570.86.10"), "nvidia-smi"),
        cuda=Observed(CudaVersion(12, 8), "nvidia-smi"),
    ),
    gpus=Observed(
        (
            Gpu(
                0,
                "nvidia-smi, line 9",
                name="NVIDIA GeForce RTX 5090",
                compute_capability=ComputeCapability(12, 0),
                memory_total_bytes=34190917632,
            ),
        ),
        "nvidia-smi",
    ),
    host=Host(distro=Observed("Ubuntu 24.04", "os-release")),
    environment=Environment(
        python=Observed("3.11.9", "python"),
        distributions={
            "torch": Distribution("torch", "requirements.txt, line 12", "2.6.0+cu124"),
            "bitsandbytes": Distribution("bitsandbytes", "requirements.txt, line 3", "0.45.0"),
        },
    ),
)


def diagnosis(*findings: Finding, facts: Facts = FACTS, crashed: bool = False) -> Diagnosis:
    """The findings given (all three when none are), their checks, one passed and one skipped check."""
    findings = findings or (ARCH, BNB, SHM)
    checks = [CheckResult(f.id, Outcome.FAILED, None, 0.5) for f in findings]
    checks += [
        CheckResult("DRIVER-CUDA", Outcome.PASSED, None, 0.1),
        CheckResult("NCCL-VERSION", Outcome.SKIPPED, "NCCL's version is not told"),
    ]
    if crashed:
        checks.append(CheckResult("XID-DECODE", Outcome.CRASHED, "KeyError: 999"))
    return Diagnosis(facts, tuple(checks), findings, 1, "0.1.0", "2026.11.20", "2026-11-20")


def healthy() -> Diagnosis:
    """Nothing found."""
    checks = (CheckResult("DRIVER-CUDA", Outcome.PASSED),)
    return Diagnosis(FACTS, checks, (), 0, "0.1.0", "2026.11.20", "2026-11-20")
