"""What was examined stands first, and what is not told is said to be not told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sample_diagnosis import FACTS, diagnosis

from envdoctor.facts import ComputeCapability, Distribution, Environment, Facts, Gpu, Host, Observed
from envdoctor.facts.backend import Backend, backend_of
from envdoctor.findings import Examined
from envdoctor.report.document import plain
from envdoctor.report.facts import examined_rows
from envdoctor.report.rendering import render


def told(facts: Facts) -> dict[str, str]:
    return {row.label: plain(row.words) for row in examined_rows(facts, Examined("freeze.txt"))}


def with_torch(version: str | None, name: str = "torch", **more: object) -> Facts:
    environment = Environment(distributions={name: Distribution(name, "pip list, line 3", version)}, **more)  # type: ignore[arg-type]
    return Facts(environment=environment)


def with_card(name: str, **more: object) -> Facts:
    return Facts(gpus=Observed((Gpu(0, "line 1", name=name, **more),), "line 1"))  # type: ignore[arg-type]


def test_the_text_opens_with_what_was_examined():
    lines = render(diagnosis()).splitlines()
    assert [line.split()[0] for line in lines[2:8]] == [
        *("Examined", "Interpreter", "GPU", "Driver", "torch", "Stack")
    ]


def test_what_is_not_told_is_said_to_be_not_told():
    rows = told(Facts())
    assert rows.pop("Examined") == "freeze.txt"
    assert set(rows) == {"Interpreter", "GPU", "Driver", "torch", "Stack"}
    assert set(rows.values()) == {"not told"}


def test_an_absence_that_is_known_is_no_lack_of_knowledge():
    rows = told(Facts(environment=Environment(complete=True), gpus=Observed((), "NVML")))
    assert (rows["GPU"], rows["torch"]) == ("none seen", "not installed")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (with_torch("2.6.0+cu124"), "2.6.0+cu124"),
        (with_torch("2.6.0"), "2.6.0, variant not told"),
        (with_torch("2.6.0", builds={"torch": {"variant": "cpu"}}), "2.6.0, cpu"),
        (with_torch("2.6.0", builds={"torch": {"cuda": "12.4"}}), "2.6.0, cuda 12.4"),
    ],
)
def test_torch_stands_with_its_variant(facts: Facts, words: str):
    assert told(facts)["torch"] == words


@pytest.mark.parametrize(
    ("facts", "backend"),
    [
        (with_card("NVIDIA H200"), Backend.CUDA),
        (with_card("L40S"), Backend.CUDA),
        (with_card("unheard of", compute_capability=ComputeCapability(9, 0)), Backend.CUDA),
        (with_card("AMD Instinct MI250X/MI250"), Backend.ROCM),
        (with_card("Ascend 910B3"), Backend.ASCEND),
        (with_card("Intel(R) Data Center GPU Max 1550"), Backend.XPU),
        (with_card("Intel(R) Arc(TM) A770 Graphics"), Backend.XPU),
        (with_card("AMD Radeon Pro V340"), Backend.ROCM),
        (with_card("Apple M1 Pro"), Backend.MPS),
        (with_torch("2.6.0+cu124"), Backend.CUDA),
        (with_torch("2.4.0+rocm6.1"), Backend.ROCM),
        (with_torch("2.4.0+cpu"), Backend.CPU),
        (with_torch("2.4.0+xpu"), Backend.XPU),
        (with_torch("2.4.0", name="torch-npu"), Backend.ASCEND),
        (Facts(host=Host(os=Observed("macos", "x"), arch=Observed("arm64", "x"))), Backend.MPS),
        (Facts(host=Host(os=Observed("macos", "x"), arch=Observed("x86_64", "x"))), Backend.CPU),
        (with_torch("2.6.0"), None),
        (Facts(), None),
    ],
)
def test_the_backend_is_known_by_its_evidence(facts: Facts, backend: Backend | None):
    found = backend_of(facts)
    assert found.get() == backend
    if isinstance(found, Observed):
        assert found.source


def test_a_card_counts_more_than_the_torch_that_was_installed_for_it():
    facts = replace(with_torch("2.6.0+cpu"), gpus=with_card("NVIDIA H200").gpus)
    assert backend_of(facts).get() == Backend.CUDA


def test_json_says_what_was_looked_at():
    own = replace(diagnosis(), examined=Examined("this machine", own=True))
    assert json.loads(render(own, "json"))["examined"] == {
        "source": "this machine",
        "interpreter": None,
        "backend": "cuda",
        "own": True,
    }
    assert (
        json.loads(render(diagnosis(facts=replace(FACTS, gpus=Facts().gpus, driver=Facts().driver)), "json"))[
            "examined"
        ]["backend"]
        == "cuda"
    )
