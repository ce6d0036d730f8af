"""What GPUs and the machine report of their own state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared import facts_of, found, seen

from envdoctor.facts import Facts, Gpu, Observed, Xid
from envdoctor.matrix import load_matrix
from envdoctor.rules.conditions import judge
from envdoctor.rules.view import View

MIB = 1 << 20


def with_gpu(**state: object) -> Facts:
    """Return facts of one H100 in that state."""
    gpu = replace(Gpu(0, "NVML", name="NVIDIA H100 80GB HBM3"), **state)
    return replace(facts_of(), gpus=Observed((gpu,), "NVML"))


@pytest.mark.parametrize(
    ("state", "finding", "severity"),
    [
        ({"ecc_uncorrected": 2}, "GPU-ECC-UNCORRECTED", "warning"),
        ({"remapped_rows_pending": True}, "GPU-REMAP-PENDING", "warning"),
        ({"remapped_rows_failed": True}, "GPU-REMAP-FAILED", "error"),
        ({"compute_mode": "Exclusive_Process"}, "GPU-COMPUTE-EXCLUSIVE", "warning"),
        ({"compute_mode": "Prohibited"}, "GPU-COMPUTE-PROHIBITED", "error"),
        ({"persistence": False}, "GPU-PERSISTENCE-OFF", "note"),
        ({"mig": "Enabled"}, "GPU-MIG-NCCL", "note"),
        ({"pcie_width": 4, "pcie_width_max": 16}, "GPU-PCIE-WIDTH", "note"),
    ],
)
def test_a_state_that_means_trouble(state: dict[str, object], finding: str, severity: str) -> None:
    assert found(with_gpu(**state))[finding].severity.value == severity


def test_a_sound_gpu_is_no_finding() -> None:
    sound = {
        "ecc_uncorrected": 0,
        "remapped_rows_pending": False,
        "compute_mode": "Default",
        "persistence": True,
    }
    assert found(with_gpu(**sound, mig="Disabled", pcie_width=16, pcie_width_max=16)) == {}


def test_a_desktop_card_without_persistence_is_no_finding() -> None:
    facts = replace(
        facts_of(), gpus=Observed((Gpu(0, "NVML", name="GeForce RTX 4090", persistence=False),), "NVML")
    )
    assert found(facts) == {}


@pytest.mark.parametrize(("number", "severity"), [(79, "error"), (13, "note"), (45, "note")])
def test_a_kernel_error_is_told_by_its_number(number: int, severity: str) -> None:
    xid = Xid(number, "0000:01:00", f"NVRM: Xid (PCI:0000:01:00): {number}, pid=1")
    facts = replace(facts_of(), driver=replace(facts_of().driver, xids=(xid,)))
    assert found(facts)[f"XID-{number}"].severity.value == severity


def test_a_kernel_error_is_read_from_a_pasted_log() -> None:
    line = seen("SYM-XID", "NVRM: Xid (PCI:0000:65:00): 48, double bit", bus="PCI:0000:65:00", xid="48")
    assert found(facts_of(symptoms=(line,)))["XID-48"].explains == ("SYM-XID",)


def test_little_shared_memory_matters_with_several_gpus() -> None:
    small = Observed(64 * MIB, "statvfs")
    two = facts_of("A100", "A100")
    assert (
        found(replace(two, host=replace(two.host, shm_bytes=small)))["SHM-SMALL"].severity.value == "warning"
    )
    one = facts_of("A100")
    assert (
        found(replace(one, host=replace(one.host, shm_bytes=small)))["SHM-SMALL-ONE-GPU"].severity.value
        == "note"
    )


def test_a_full_cache_disk_is_a_warning() -> None:
    host = replace(facts_of().host, disk_free_bytes={"hf_cache": 200 * MIB, "tmp": 50 << 30})
    assert list(found(replace(facts_of(), host=host))) == ["DISK-FULL-HF-CACHE"]


@pytest.mark.parametrize(
    ("value", "condition", "holds"),
    [
        ("0.85", ">=0.9", False),
        ("0.95", ">=0.9", True),
        ("0.06", "<0.1", True),
        ("4096", ">=512,<8192", True),
    ],
)
def test_decimal_numbers_are_not_compared_as_versions(value: str, condition: str, holds: bool) -> None:
    facts = facts_of(settings={"vllm_utilization": value})
    assert judge(View(facts, load_matrix()), "setting.vllm_utilization", condition).holds is holds
