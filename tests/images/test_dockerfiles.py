"""Dockerfiles: what their steps lead to, in order, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.facts import Facts
from envdoctor.images.dockerfile import last_stage, parse_instructions
from envdoctor.inputs import is_dockerfile
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

RUNTIME = (
    "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nRUN apt-get update && apt-get install -y python3.10\n"
)
DEVEL = RUNTIME.replace("runtime", "devel")
APEX = "RUN pip install --no-build-isolation git+https://github.com/NVIDIA/apex\n"
TORCH = "RUN pip install torch==2.4.0 --index-url https://download.pytorch.org/whl/cu124\n"


def facts_of(text: str, folder: Path | None = None) -> Facts:
    return parse_paste(text, "", load_matrix().lexicon, "Dockerfile", folder)


def versions(text: str, folder: Path | None = None) -> dict[str, str | None]:
    found = facts_of(text, folder).environment.distributions
    return {name: one.version or one.specifier or None for name, one in found.items()}


def findings(capsys: pytest.CaptureFixture[str], folder: Path, text: str, *words: str) -> str:
    (folder / "Dockerfile").write_text(text, encoding="utf-8")
    main(["diagnose", "--from", str(folder / "Dockerfile"), "--all", *words])
    return capsys.readouterr().out


def test_lines_are_joined_variables_put_in_and_stages_followed() -> None:
    text = (
        "# syntax=docker/dockerfile:1\nARG CUDA=12.1.1\nFROM nvidia/cuda:${CUDA}-devel AS build\nRUN make\n"
        "FROM nvidia/cuda:${CUDA}-${FLAVOUR:-runtime} AS base\nENV A=1 \\\n  # a remark\n  B=two\n\n"
        "FROM base\nRUN <<EOF\npip install torch==2.4.0\nEOF\n"
    )
    built = last_stage(list(parse_instructions(text)))
    assert built is not None
    assert built.base == "nvidia/cuda:12.1.1-runtime"
    assert [(one.word, one.line) for one in built.instructions if one.line] == [("ENV", 6), ("RUN", 11)]
    assert versions(text) == {"torch": "2.4.0"}


def test_a_later_step_stands_for_an_earlier_one() -> None:
    text = (
        DEVEL + TORCH + "RUN pip install torch peft && pip install -U torch==2.6.0 && pip uninstall -y peft\n"
    )
    assert versions(text) == {"torch": "2.6.0"}
    assert facts_of(DEVEL + TORCH).environment.builds["torch"]["cuda"] == "12.4"


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ("torch==2.4.0", "2.4.0+cu124"),
        ("torch==2.4.0 --index-url https://download.pytorch.org/whl/cu121", "2.4.0+cu124"),
        ("torch==2.4.1", "2.4.1"),
        ("torch==2.4.0+cu121", "2.4.0+cu121"),
    ],
)
def test_a_release_that_is_there_stays_as_it_was_built(asked: str, there: str) -> None:
    assert versions(f"{DEVEL}{TORCH}RUN pip install {asked}\n")["torch"] == there


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("RUN python3 -m pip install --no-cache-dir 'peft>=0.13' -U", {"peft": ">=0.13"}),
        ("RUN uv pip install --system peft==0.15.0", {"peft": "0.15.0"}),
        ('RUN ["pip", "install", "peft==0.15.0"]', {"peft": "0.15.0"}),
        (
            "RUN --mount=type=cache,target=/root/.cache pip install peft==0.15.0; echo done",
            {"peft": "0.15.0"},
        ),
        ("ARG V=0.15.0\nRUN pip install peft==${V}", {"peft": "0.15.0"}),
        ("RUN echo 'pip install vllm' > notes", {}),
        ("RUN conda install -y pytorch==2.3.1 pytorch-cuda=12.1 -c pytorch", {"torch": "2.3.1"}),
        (
            "RUN pip install https://example.com/flash_attn-2.6.3+cu12-cp310-cp310-linux_x86_64.whl",
            {"flash-attn": "2.6.3"},
        ),
        ("RUN pip install . && pip install -e .[dev]", {}),
    ],
)
def test_installs_are_read_in_every_form(step: str, expected: dict[str, str]) -> None:
    found = versions(DEVEL + step + "\n")
    assert {name: (version or "").partition("+")[0] for name, version in found.items()} == expected


def test_a_file_of_requirements_beside_it_is_read_and_one_that_is_not_is_said(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "peft==0.15.0  # why\n-f https://example.com\n", encoding="utf-8"
    )
    text = DEVEL + "COPY requirements.txt /app/\nRUN pip install -r /app/requirements.txt -r other.txt\n"
    facts = facts_of(text, tmp_path)
    assert facts.environment.distributions["peft"].source == "Dockerfile, line 4 (/app/requirements.txt:1)"
    assert facts.notes == ("line 4: other.txt is not beside the Dockerfile: what it lists is not known",)


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        (
            RUNTIME + TORCH + "RUN pip install --no-build-isolation git+https://github.com/NVIDIA/apex\n",
            "IMAGE-NO-NVCC",
        ),
        (RUNTIME + TORCH + "RUN pip install --no-build-isolation flash-attn==2.6.3\n", "IMAGE-NO-NVCC"),
        (DEVEL + TORCH + "RUN pip install flash-attn==2.6.3\n", "IMAGE-TORCH-FIRST"),
        (DEVEL + "RUN pip install --no-build-isolation torch flash-attn\n", "IMAGE-TORCH-FIRST"),
        (DEVEL + "RUN pip install torch==2.1.0 numpy==2.1.0\n", "NUMPY2-TORCH"),
        (DEVEL + TORCH + "RUN pip install vllm==0.5.0\n", "VLLM-TORCH"),
        (DEVEL.replace("12.4.1", "11.8.0") + TORCH + APEX, "IMAGE-CUDA-MAJOR"),
        ("FROM python:3.13-slim\nRUN pip install torch==2.1.0\n", "IMAGE-PYTHON"),
        (DEVEL + TORCH + "ENV NVIDIA_DRIVER_CAPABILITIES=graphics,utility\n", "IMAGE-DRIVER-CAPABILITIES"),
        (DEVEL + TORCH + "ENV NVIDIA_DRIVER_CAPABILITIES compute\n", "IMAGE-DRIVER-CAPABILITIES"),
    ],
)
def test_a_planted_fault_is_found(
    text: str, identity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert identity in findings(capsys, tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        DEVEL + TORCH + "RUN pip install --no-build-isolation flash-attn==2.6.3\n",
        RUNTIME + TORCH + "RUN pip install transformers==4.44.0 accelerate==0.33.0\n",
        RUNTIME
        + "RUN apt-get install -y cuda-nvcc-12-4\n"
        + TORCH
        + "RUN pip install --no-build-isolation flash-attn\n",
        "FROM example.com/serving:1\nRUN pip install --no-build-isolation git+https://github.com/NVIDIA/apex\n",
        RUNTIME + "# This avoids an error: Failed to build mpi4py\n" + TORCH,
        "FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel\nRUN pip install --no-build-isolation flash-attn\n",
        DEVEL.replace("12.4.1", "12.1.0") + TORCH + APEX,
        DEVEL.replace("12.4.1", "11.8.0") + "RUN apt-get install -y cuda-toolkit-12-4\n" + TORCH + APEX,
        DEVEL + TORCH + "ENV NVIDIA_DRIVER_CAPABILITIES=all\n",
        DEVEL + TORCH + "ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility,video\n",
        "FROM python:3.11\nRUN pip install torch==2.1.0\n",
        "FROM python:3.13\nRUN pip install sentencepiece==0.1.99 einops==0.7.0\n",
        "FROM python:3.13\nRUN pyenv install 3.10.2\nRUN pip install torch==2.1.0\n",
        "FROM python:3.13\nRUN apt-get install -y python3.10-venv\nRUN pip install torch==2.1.0\n",
    ],
)
def test_a_healthy_one_has_no_finding(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = findings(capsys, tmp_path, text)
    assert "IMAGE-" not in told
    assert "UNEXPLAINED-ERROR" not in told


def test_the_base_image_s_cuda_is_judged_against_a_driver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "DRIVER-CONTAINER-IMAGE" in findings(capsys, tmp_path, DEVEL, "--driver", "470.82.01")


def test_a_registry_with_a_port_is_no_tag() -> None:
    image = "registry.example.com:5000/pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"
    facts = facts_of(f"FROM {image}\n")
    assert facts.host.container.get() == image
    assert facts.environment.distributions["torch"].version == "2.4.0"


def test_variables_that_look_secret_are_left_out() -> None:
    assert facts_of(DEVEL + "ENV HF_TOKEN=x NCCL_DEBUG=INFO\n").variables == {"NCCL_DEBUG": "INFO"}


def test_a_dockerfile_is_known_by_its_name() -> None:
    assert all(map(is_dockerfile, ("a/Dockerfile", "Dockerfile.gpu", "train.dockerfile", "Containerfile")))
    assert not any(map(is_dockerfile, ("Dockerfiles.md", "docker-compose.yml")))


def test_errors_that_a_dockerfile_quotes_happened_to_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        DEVEL + TORCH + "# AttributeError: 'A' object has no attribute 'b'\nRUN echo 'ValueError: no' && \\\n"
        "    # RuntimeError: CUDA error: no kernel image is available for execution on the device\n    true\n"
    )
    assert facts_of(text).errors == () == facts_of(text).symptoms
    beneath = text + "\nTraceback (most recent call last):\nAttributeError: 'A' object has no attribute 'b'\n"
    assert [error.line for error in facts_of(beneath).errors] == [10]
    assert "[error]" not in findings(capsys, tmp_path, text)


def test_a_variable_of_which_nothing_is_known_is_not_judged() -> None:
    steps = "ARG ARCHES\nENV TORCH_CUDA_ARCH_LIST=${ARCHES} CUDA_VISIBLE_DEVICES=0\n"
    assert {*facts_of(DEVEL + steps).variables} == {"CUDA_VISIBLE_DEVICES"}


def test_isolation_from_a_torch_that_is_there_depends_on_pip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Dockerfile").write_text(
        DEVEL + TORCH + "RUN pip install flash-attn==2.6.3\n", encoding="utf-8"
    )
    assert main(["diagnose", "--from", str(tmp_path / "Dockerfile")]) == 0
    assert "IMAGE-TORCH-FIRST" in capsys.readouterr().out
    (tmp_path / "Dockerfile").write_text(DEVEL + "RUN pip install flash-attn==2.6.3\n", encoding="utf-8")
    assert main(["diagnose", "--from", str(tmp_path / "Dockerfile")]) == 1
