"""Attention kernels: the card, the code in the binary, the C library."""

from __future__ import annotations

import pytest
from declared import facts_of, found, pins, seen
from packaging.version import Version

from envdoctor.matrix import load_matrix
from envdoctor.matrix.flash_wheels import releases_for

FLASH = {"attn": "flash_attention_2"}


@pytest.mark.parametrize(
    ("gpu", "lacks"),
    [("Tesla T4", True), ("V100", True), ("A10", False), ("RTX 4090", False), ("B200", False)],
)
def test_flash_attention_2_needs_ampere(gpu: str, lacks: bool) -> None:
    assert ("FLASH-ATTN-CC" in found(facts_of(gpu, settings=FLASH))) is lacks


def test_flash_attn_merely_installed_on_an_old_card_is_no_finding() -> None:
    assert "FLASH-ATTN-CC" not in found(
        facts_of("Tesla T4", packages={"flash-attn": "2.8.3", "torch": "2.8.0"})
    )


@pytest.mark.parametrize(("gpu", "lacks"), [("A100", True), ("H100", False), ("RTX 5090", True)])
def test_flash_attention_3_is_for_hopper_alone(gpu: str, lacks: bool) -> None:
    assert ("FLASH-ATTN-3-CC" in found(facts_of(gpu, settings={"attn": "flash_attention_3"}))) is lacks


def test_a_missing_kernel_in_the_hopper_folder_is_flash_attention_3() -> None:
    path = "CUDA error (/workspace/xfrm2/third_party/flash-attention/hopper/flash_fwd_launch_template.h:188)"
    facts = facts_of("RTX 5090", packages={"torch": "2.8.0"}, symptoms=(seen("SYM-FA-CUTLASS-ARCH", path),))
    finding = found(facts)["FLASH-ATTN-NO-KERNEL"]
    assert "xformers" in finding.summary
    assert "Hopper" in finding.summary
    assert "SYM-NO-KERNEL-IMAGE" in finding.explains


def test_a_missing_kernel_of_flash_attn_is_built_for_the_card() -> None:
    path = "CUDA error (/build/flash-attn/flash_fwd_launch_template.h:184): no kernel image is available"
    facts = facts_of(
        "RTX 5090", packages={"flash-attn": "2.8.3"}, symptoms=(seen("SYM-FA-CUTLASS-ARCH", path),)
    )
    command = found(facts)["FLASH-ATTN-NO-KERNEL"].remedies[0].commands[0]
    assert "FLASH_ATTN_CUDA_ARCHS=120" in command


def test_a_wheel_for_a_newer_c_library_gives_way_to_an_older_release() -> None:
    line = seen(
        "SYM-GLIBC", "version `GLIBC_2.32' not found (required by flash_attn_2_cuda.so)", needed="2.32"
    )
    facts = facts_of(packages={"flash-attn": "2.8.0.post2", "torch": "2.5.1"}, glibc="2.31", symptoms=(line,))
    finding = found(facts)["FLASH-ATTN-GLIBC"]
    assert pins(finding)[0] == {"flash-attn": ">=2.7.0,<=2.7.4.post1"}


def test_the_same_wheel_on_a_newer_system_is_fine() -> None:
    facts = facts_of(packages={"flash-attn": "2.8.3", "torch": "2.8.0"}, glibc="2.35")
    assert "FLASH-ATTN-GLIBC" not in found(facts)


@pytest.mark.parametrize(
    ("torch", "releases"),
    [
        ("2.3", ">=2.5.8,<=2.7.4.post1"),
        ("2.6", ">=2.7.4,<=2.7.4.post1"),
        ("2.7", ">=2.8.0.post1"),
        ("2.8", ">=2.8.3"),
        ("2.9", None),
    ],
)
def test_wheels_exist_for_some_torch_only(torch: str, releases: str | None) -> None:
    assert releases_for(load_matrix(), Version(torch)) == releases


def test_xformers_for_another_architecture_is_a_warning() -> None:
    finding = found(facts_of("Tesla V100-SXM2-32GB", packages={"xformers": "0.0.34", "torch": "2.10.0"}))[
        "XFORMERS-ARCH"
    ]
    assert finding.severity.value == "warning"


def test_a_build_without_nvcc_is_explained() -> None:
    line = seen("SYM-NVCC-MISSING", "flash_attn was requested, but nvcc was not found", name="flash_attn")
    finding = found(facts_of(packages={"flash-attn": "2.6.3"}, symptoms=(line,)))["FLASH-ATTN-BUILD-NVCC"]
    assert "wheel" in finding.summary
