"""A driver is judged by the CUDA major that torch needs, never by a newer minor one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared import errors, facts_of, found, pins, seen

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import CudaVersion, DriverVersion, Observed, Toolkit
from envdoctor.findings import Outcome
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

TOO_OLD = "SYM-DRIVER-TOO-OLD"


@pytest.mark.parametrize(
    ("driver", "torch"),
    [
        ("535.274.02", "2.10.0"),
        ("535.274.02", "2.14.1+cu126"),
        ("550.163.01", "2.9.1"),
        ("525.60.13", "2.8.0"),
        ("570.211.01", "2.10.0"),
        ("580.95.05", "2.15.0"),
        ("610.43.02", "2.15.0"),
        ("610.43.02", "2.0.1"),
        ("450.80.02", "2.0.1"),
        ("470.256.02", "2.7.1+cu118"),
    ],
)
def test_a_driver_with_a_torch_that_works_on_it_is_no_error(driver: str, torch: str) -> None:
    assert errors(facts_of("A100", driver=driver, packages={"torch": torch})) == []


@pytest.mark.parametrize(
    ("driver", "torch", "pin"),
    [
        ("575.57.08", "2.11.0", ">=580"),
        ("535.104.05", "2.15.0", ">=580"),
        ("470.82.01", "2.4.0", ">=525.60.13"),
        ("440.33.01", "2.0.1", ">=450.80.02"),
        ("430.50", "1.12.1", ">=440.33"),
    ],
)
def test_a_driver_below_the_minimum_of_the_major_is_too_old(driver: str, torch: str, pin: str) -> None:
    finding = found(facts_of("RTX 2080", driver=driver, packages={"torch": torch}))["DRIVER-TOO-OLD"]
    assert pins(finding)[0] == {"nvidia-driver": pin}


def test_an_older_torch_is_the_other_way_out() -> None:
    finding = found(facts_of("A100", driver="535.104.05", packages={"torch": "2.15.0"}))["DRIVER-TOO-OLD"]
    assert {"torch": "<2.11"} in pins(finding)


def test_the_complaint_alone_tells_the_next_major() -> None:
    line = seen(TOO_OLD, "driver on your system is too old (found version 12080)", version="12080")
    finding = found(facts_of(driver="535", driver_cuda="12.8", symptoms=(line,)))["DRIVER-TOO-OLD"]
    assert pins(finding)[0] == {"nvidia-driver": ">=580"}
    assert "12.8" in finding.summary


def test_a_complaint_that_the_facts_contradict_is_not_repeated() -> None:
    line = seen(TOO_OLD, version="12020")
    facts = facts_of(driver="580.95.05", packages={"torch": "2.11.0"}, symptoms=(line,))
    assert "DRIVER-TOO-OLD" not in found(facts)


def test_no_newer_driver_is_advised_to_a_card_that_it_dropped() -> None:
    finding = found(facts_of("Tesla K80", driver="470.256.02", packages={"torch": "2.4.0"}))["DRIVER-TOO-OLD"]
    assert all("nvidia-driver" not in pin for pin in pins(finding))


def test_a_lent_user_library_counts_as_the_driver_for_torch() -> None:
    facts = facts_of("H100", driver="535.274.02", packages={"torch": "2.11.0"})
    lent = replace(facts.driver, user_version=Observed(DriverVersion.parse("580.95.05"), "cuda-compat"))
    assert "DRIVER-TOO-OLD" not in found(replace(facts, driver=lent))


def test_windows_has_minimums_of_its_own() -> None:
    facts = facts_of("RTX 3060", driver="527.41", os="windows", packages={"torch": "2.4.0+cu121"})
    assert pins(found(facts)["DRIVER-TOO-OLD"])[0] == {"nvidia-driver": ">=528.33"}


@pytest.mark.parametrize(
    ("gpu", "driver"), [("V100", "590.48.01"), ("B200", "550.54.15"), ("K80", "535.54.03")]
)
def test_a_branch_that_does_not_know_the_card_is_worth_a_warning(gpu: str, driver: str) -> None:
    assert "DRIVER-GPU" in found(facts_of(gpu, driver=driver))


def test_a_branch_past_its_end_is_a_note_and_never_an_error() -> None:
    finding = found(facts_of("A100", driver="570.211.01"))["DRIVER-END-OF-LIFE"]
    assert finding.severity.value == "note"
    assert "DRIVER-END-OF-LIFE" not in found(facts_of("A100", driver="580.95.05"))


@pytest.mark.parametrize(
    ("symptom", "finding"),
    [
        ("SYM-ERR-802", "DRIVER-ERROR-802"),
        ("SYM-ERR-803", "DRIVER-ERROR-803"),
        ("SYM-ERR-804", "DRIVER-ERROR-804"),
        ("SYM-NVML-MISMATCH", "DRIVER-NVML-MISMATCH"),
        ("SYM-NO-DRIVER", "DRIVER-ABSENT"),
        ("SYM-UNSUPPORTED-PTX", "DRIVER-PTX-TOOLCHAIN"),
        ("SYM-LIBCUDA-LINK", "DRIVER-WSL-LIBCUDA"),
    ],
)
def test_what_the_driver_says_is_explained(symptom: str, finding: str) -> None:
    assert finding in found(facts_of(symptoms=(seen(symptom),)))


@pytest.mark.parametrize(("gpu", "variant"), [("RTX 5090", "cu128"), ("Tesla P40", "cu126")])
def test_the_variant_offered_runs_on_the_card_too(gpu: str, variant: str) -> None:
    finding = found(facts_of(gpu, driver="570.211.01", packages={"torch": "2.13.0"}))["DRIVER-TOO-OLD"]
    commands = [command for remedy in finding.remedies for command in remedy.commands]
    assert any(f"--torch-backend={variant}" in command for command in commands)


@pytest.mark.parametrize(
    ("gpu", "library", "finding", "severity"),
    [
        ("GeForce RTX 3090", "580.95.05", "DRIVER-FORWARD-COMPATIBILITY", "error"),
        ("A100", "580.95.05", "DRIVER-FORWARD-COMPATIBILITY", "note"),
        ("A100", "525.60.13", "DRIVER-USER-LIBRARY-OLD", "warning"),
    ],
)
def test_a_libcuda_of_another_version_than_the_kernel_module(
    gpu: str, library: str, finding: str, severity: str
) -> None:
    facts = facts_of(gpu, driver="535.274.02")
    driver = replace(facts.driver, user_version=Observed(DriverVersion.parse(library), "libcuda.so.1"))
    assert found(replace(facts, driver=driver))[finding].severity.value == severity


def test_a_container_image_for_a_newer_major_than_the_driver_runs() -> None:
    image = Toolkit(CudaVersion(12, 4), "container image", "line 2")
    facts = replace(facts_of(driver="470.82.01"), toolkits=Observed((image,), "line 2"))
    assert pins(found(facts)["DRIVER-CONTAINER-IMAGE"])[0] == {"nvidia-driver": ">=525.60.13"}
    newer = replace(facts, driver=facts_of(driver="535.274.02").driver)
    assert "DRIVER-CONTAINER-IMAGE" not in found(newer)


def test_a_build_with_a_cuda_that_is_none_is_not_judged() -> None:
    facts = facts_of("A100", driver="535.104.05", packages={"torch": "2.9.0"})
    environment = replace(facts.environment, builds={"torch": {"cuda": "1tsil_hcra"}})
    judged = diagnose_facts(replace(facts, environment=environment), load_matrix())
    assert [check.rule for check in judged.checks if check.outcome is Outcome.CRASHED] == []


@pytest.mark.parametrize("symptom", [TOO_OLD, "SYM-DRIVER-INSUFFICIENT"])
def test_a_driver_that_suffices_is_not_blamed_for_what_cuda_said(symptom: str) -> None:
    told = facts_of("A100", driver="535.183.01", packages={"torch": "2.7.1+cu128"})
    judged = diagnose_facts(replace(told, symptoms=(seen(symptom),)))
    (finding,) = [f for f in judged.findings if f.severity.value == "error"]
    assert (finding.id, finding.certainty.value) == ("DRIVER-SUFFICES", "likely")
    assert "525.60.13 or newer (minor-version compatibility" in finding.cause
    assert "which torch ran" in finding.remedies[0].text


WSL_TEXTS = (
    "WSL2 Ubuntu 22.04, RTX 3080",
    "I'm on WSL2 (Ubuntu 22.04), RTX 3080",
    "Windows 11 with WSL 2 (Ubuntu)",
)


@pytest.mark.parametrize("told", WSL_TEXTS)
def test_in_wsl_the_driver_is_that_of_windows(told: str) -> None:
    lines = ("RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",)
    for line in (*lines, "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"):
        facts = parse_paste(f"{told}\n{line}", "", load_matrix().lexicon)
        [found] = diagnose_facts(facts).findings
        assert "wsl" in found.id.lower()
        assert not any("nvidia-driver" in command for remedy in found.remedies for command in remedy.commands)


@pytest.mark.parametrize("told", ["NVIDIA Jetson Orin Nano", "Jetson AGX Orin, JetPack 6.1"])
def test_a_jetson_takes_its_torch_from_nvidia(told: str) -> None:
    for line in ("torch: 2.6.0+cpu", "pip install torch gave me torch 2.6.0+cpu"):
        facts = parse_paste(f"{told}\n{line}", "", load_matrix().lexicon)
        [found] = diagnose_facts(facts).findings
        assert "JetPack" in found.remedies[0].text
        assert not any("pip install" in command for remedy in found.remedies for command in remedy.commands)
