"""torch's code against the card: the whole table from Kepler to Blackwell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared import errors, facts_of, found, pins, seen

from envdoctor.facts import ComputeCapability
from envdoctor.matrix import load_matrix
from envdoctor.matrix.torch_builds import torch_releases
from envdoctor.matrix.torch_wheels import capability_row, runs_on
from envdoctor.rules.ranges import version_satisfies

RELEASES = ("1.12.1", "1.13.1", "2.0.1", "2.1.2", "2.7.1", "2.8.0", "2.10.0", "2.11.0", "2.15.0")
TRUTH = {  # which default wheels run: + yes, - no, in the order of RELEASES
    "sm_30": "---------",
    "sm_35": "---------",
    "sm_37": "+++------",
    "sm_50": "+++++----",
    "sm_52": "+++++----",
    "sm_60": "+++++----",
    "sm_61": "+++++----",
    "sm_70": "+++++++--",
    "sm_75": "+++++++++",
    "sm_80": "-++++++++",
    "sm_86": "-++++++++",
    "sm_87": "-++++++++",
    "sm_89": "-++++++++",
    "sm_90": "---++++++",
    "sm_100": "-----++++",
    "sm_103": "-----++++",
    "sm_120": "-----++++",
    "sm_121": "-----++++",
}


@pytest.mark.parametrize(
    ("sm", "torch", "runs"),
    [
        (sm, torch, mark == "+")
        for sm, marks in TRUTH.items()
        for torch, mark in zip(RELEASES, marks, strict=True)
    ],
)
def test_the_default_wheel_runs_on_the_card_or_not(sm: str, torch: str, runs: bool) -> None:
    assert ("TORCH-ARCH" in errors(facts_of(sm, packages={"torch": torch}))) is not runs


@pytest.mark.parametrize(
    ("archs", "capability", "runs"),
    [
        ("sm_80 sm_86", "8.9", True),
        ("sm_86", "8.0", False),
        ("sm_90a", "9.0", True),
        ("sm_90a", "10.0", False),
        ("sm_100f", "10.3", True),
        ("sm_100a", "10.3", False),
        ("compute_90", "12.0", True),
        ("8.0+PTX", "12.0", True),
        ("8.0", "12.0", False),
        ("sm_120", "12.1", True),
    ],
)
def test_code_runs_within_a_major_and_ptx_beyond_it(archs: str, capability: str, runs: bool) -> None:
    assert runs_on(archs.split(), ComputeCapability.parse(capability)) is runs


def test_the_rows_say_what_the_wheels_hold() -> None:
    matrix = load_matrix()
    for version, release in torch_releases(matrix):
        for name in ("3.7", "5.0", "6.1", "7.0", "7.5", "8.0", "8.9", "9.0", "10.0", "12.0"):
            row = capability_row(matrix, ComputeCapability.parse(name))
            assert row is not None
            held = runs_on(release["arch_list"], ComputeCapability.parse(name))
            assert version_satisfies(version, row.default) is held, (str(version), name)


@pytest.mark.parametrize(
    ("gpu", "torch", "pin"),
    [
        ("RTX 5090", "2.6.0", {"torch": ">=2.8"}),
        ("B200", "2.7.1", {"torch": ">=2.8"}),
        ("GTX 1080 Ti", "2.9.1", {"torch": "<2.8"}),
        ("Tesla V100-SXM2-32GB", "2.12.0", {"torch": "<2.11"}),
        ("Tesla K80", "2.7.1+cu118", {"torch": "<2.0"}),
        ("H100", "1.13.1", {"torch": ">=2.1"}),
    ],
)
def test_the_remedy_names_a_torch_that_runs(gpu: str, torch: str, pin: dict[str, str]) -> None:
    assert pins(found(facts_of(gpu, packages={"torch": torch}))["TORCH-ARCH"])[0] == pin


def test_a_variant_that_runs_old_cards_is_offered() -> None:
    finding = found(facts_of("GTX 1080 Ti", packages={"torch": "2.12.0"}))["TORCH-ARCH"]
    assert any("cu126" in command for remedy in finding.remedies for command in remedy.commands)


@pytest.mark.parametrize("torch", ["2.7.1+cu128", "2.10.0+cu128", "2.9.0.dev20250909+cu128"])
def test_blackwell_with_a_cuda_12_8_build_is_no_error(torch: str) -> None:
    assert errors(facts_of("RTX 5090", packages={"torch": torch})) == []


def test_pascal_with_the_cu126_variant_is_no_error() -> None:
    assert errors(facts_of("Tesla P40", driver="580.95.05", packages={"torch": "2.14.1+cu126"})) == []


def test_a_second_card_that_runs_makes_it_a_warning() -> None:
    finding = found(facts_of("RTX 4090", "GeForce GT 710", packages={"torch": "2.10.0"}))["TORCH-ARCH"]
    assert finding.severity.value == "warning"


def test_no_kernel_image_is_explained_by_the_facts() -> None:
    line = seen("SYM-NO-KERNEL-IMAGE")
    finding = found(facts_of("RTX 5090", packages={"torch": "2.6.0"}, symptoms=(line,)))["TORCH-ARCH"]
    assert finding.explains == ("SYM-NO-KERNEL-IMAGE",)


def test_a_cpu_build_beside_a_gpu_is_an_error_and_alone_is_not() -> None:
    assert errors(facts_of("RTX 4070", packages={"torch": "2.5.1+cpu"})) == ["TORCH-CPU-BUILD"]
    assert errors(facts_of(packages={"torch": "2.5.1+cpu"})) == []


def test_the_default_wheel_for_arm_was_a_cpu_build() -> None:
    facts = facts_of("NVIDIA GH200 480GB", arch="aarch64", packages={"torch": "2.10.0"})
    assert pins(found(facts)["TORCH-CPU-BUILD"]) == [{"torch": ">=2.11"}]
    assert errors(facts_of("NVIDIA GB10", arch="aarch64", packages={"torch": "2.11.0"})) == []


def test_windows_takes_a_cpu_build_from_the_default_index() -> None:
    assert "TORCH-WINDOWS-CPU" in found(facts_of("RTX 4060", os="windows", packages={"torch": "2.9.1"}))
    assert "TORCH-WINDOWS-CPU" not in found(
        facts_of("RTX 4060", os="windows", packages={"torch": "2.9.1+cu128"})
    )


def test_another_build_of_the_same_torch_is_enough_where_the_version_is_right() -> None:
    finding = found(facts_of("RTX 5090", packages={"torch": "2.8.0+cu126"}))["TORCH-ARCH"]
    assert finding.remedies[0].commands == ("pip install --force-reinstall torch==2.8.0",)


def test_a_torch_that_is_not_there_is_not_judged() -> None:
    facts = facts_of("sm_86", packages={"numpy": "2.0.0"})
    whole = replace(facts, environment=replace(facts.environment, complete=True))
    assert errors(whole) == []
