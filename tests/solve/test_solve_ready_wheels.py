"""flash-attn comes as source, whose setup fetches a ready wheel for some torches: those are chosen."""

from __future__ import annotations

from typing import Any

import pytest

from envdoctor.api import pin
from envdoctor.solve.answer import PinSet
from envdoctor.solve.summary import summary_lines

NEW: dict[str, Any] = {"gpus": ["RTX 4090"], "python_version": "3.11", "platform": "x86_64-manylinux_2_35"}


def asked(*requests: str, **target: Any) -> PinSet:
    return pin(requests, **{**NEW, **target})


def pinned(answer: PinSet) -> dict[str, str]:
    return {one.name: one.version for one in answer.pins}


def test_it_is_pinned_beside_a_torch_that_has_a_ready_wheel() -> None:
    found = pinned(asked("flash-attn==2.8.3"))
    assert found["torch"].startswith("2.8.")


def test_where_builds_are_allowed_a_ready_wheel_is_still_taken() -> None:
    answer = asked("flash-attn==2.8.3", allow_source=True)
    assert pinned(answer)["torch"].startswith("2.8.")
    told = next(one.because for one in answer.pins if one.name == "torch")
    assert any("no ready wheel" in reason and "would be compiled" in reason for reason in told)


def test_a_torch_that_is_asked_for_is_built_for_where_builds_are_allowed() -> None:
    found = pinned(asked("flash-attn==2.8.3", "torch==2.9.1", allow_source=True))
    assert found["torch"] == "2.9.1"


def test_without_builds_another_torch_is_a_conflict_that_names_those_with_wheels() -> None:
    answer = asked("flash-attn==2.8.3", "torch==2.9.1")
    assert answer.status == "conflict"
    assert any(">=2.4,<2.9" in cause.text for cause in answer.causes)
    assert any("--allow-source" in way.drop for way in answer.relaxations)


@pytest.mark.parametrize(
    "target",
    [
        {"platform": "x86_64-manylinux_2_28"},
        {"platform": "aarch64-manylinux_2_35"},
        {"python_version": "3.14"},
    ],
)
def test_no_wheel_is_ready_for_an_older_c_library_another_machine_or_python(target: dict[str, str]) -> None:
    answer = asked("flash-attn==2.8.3", **target)
    assert answer.status == "conflict"
    assert any("only a source build exists" in cause.text for cause in answer.causes)


def test_the_command_installs_torch_first_and_builds_outside_of_isolation() -> None:
    *_, uv, pip = summary_lines(asked("flash-attn==2.8.3"), "c.txt")
    steps = uv.removeprefix("install: ").split(" && ")
    assert steps[0].startswith("uv pip install torch setuptools")
    assert steps[1] == "uv pip install --no-build-isolation flash-attn -c c.txt"
    assert steps[2] == "uv pip install flash-attn==2.8.3 -c c.txt"
    assert pip.count("python -m pip install") == 3


def test_what_has_wheels_is_installed_in_one_step() -> None:
    *_, uv, _ = summary_lines(asked("xformers"), "c.txt")
    assert " && " not in uv


def test_a_client_without_its_engine_is_said_to_be_one() -> None:
    """sglang is an engine by an extra in some releases, and asks for its kernels without one in others."""
    alone, whole = (" ".join(asked(name).notes) for name in ("sglang==0.5.2", "sglang[all]==0.5.2"))
    assert "sglang 0.5.2 without an extra is an engine's client alone" in alone
    assert "client" not in whole
