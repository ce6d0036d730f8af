"""What pip's own lines tell of single packages."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("text", "name", "version", "source"),
    [
        ("Name: gizmo\nVersion: 2.2.3.dev0\nLocation: /opt", "gizmo", "2.2.3.dev0", "pip show, line 2"),
        ("Name: gizmo\n**Version: 4.51.3**", "gizmo", "4.51.3", "pip show, line 2"),
        (
            "Requirement already satisfied: gizmo[all]>=0.4 in f:\\venv\\lib\\site-packages (0.18.1)",
            "gizmo",
            "0.18.1",
            "pip, line 1",
        ),
        (
            "Successfully installed numpy-2.0.2 torch-npu-2.7.1.dev2025",
            "torch-npu",
            "2.7.1.dev2025",
            "pip, line 1",
        ),
        (
            "  Downloading gizmo-0.6.1-cp38-abi3-manylinux_2_17_x86_64.whl (4 kB)",
            "gizmo",
            "0.6.1",
            "pip, line 1",
        ),
        ("cat /opt/lib/site-packages/gizmo-0.61.0.dist-info/METADATA", "gizmo", "0.61.0", "line 1"),
    ],
)
def test_what_pip_says_of_a_package_is_its_version(read, text, name, version, source) -> None:
    told = read(text).distribution(name)
    assert (told.version, told.source) == (version, source)


def test_of_releases_that_pip_tried_in_turn_none_is_told(read) -> None:
    wheel = "Downloading gizmo-{}-py3-none-any.whl (4 kB)"
    assert read(f"{wheel.format('1.0.1')}\n{wheel.format('1.0.0')}").distribution("gizmo") is None


@pytest.mark.parametrize(
    "line",
    [
        "My transformers version is 4.52.3 and I have",
        "transformers version: `v4.52.3`",
        "transformers Docker v4.52.3 produces an error",
        "latest Docker transformers image (v4.52.3)",
        "transformers 는 4.52.3 입니다",
        "transformers版本是4.52.3",
    ],
)
def test_versions_are_read_in_the_words_around_them(read, line) -> None:
    assert read(line).distribution("transformers").version == "4.52.3"


FRAME = '  File "/opt/v/lib/python3.12/site-packages/vllm/engine/llm_engine.py", line 400, in step'


@pytest.mark.parametrize(
    ("text", "version", "specifier"),
    [
        ("$ pip install vllm==0.8.4", None, "==0.8.4"),
        ("I ran uv pip install 'torch==2.6.0' vllm[audio]==0.8.4 and started it", None, "==0.8.4"),
        (f"pip install vllm==0.8.4\n{FRAME}", "0.8.4", ""),
        ("I upgraded vllm from 0.8.3 to 0.8.4 and since then it hangs", None, "==0.8.4"),
        ("after updating vllm to 0.8 it hangs", None, "==0.8.*"),
        ("vllm 0.8.5\nI ran pip install vllm==0.8.4", "0.8.5", ""),
    ],
)
def test_what_an_installer_was_asked_for(read, text, version, specifier):
    vllm = read(text).distribution("vllm")
    assert (vllm.version, vllm.specifier) == (version, specifier)


@pytest.mark.parametrize(
    "text",
    [
        "try pip install vllm==0.8.4",
        "pip install vllm==0.8.4 fixed it",
        "pip install vllm==0.8.4\npip install vllm==0.8.5",
        "pip install vllm==0.8.4\nERROR: No matching distribution found for vllm==0.8.4",
        "pip install ./vllm==0.8.4",
        "downgrading vllm to 0.8.4 helped",
        "After I degrade vllm 0.8.5 to 0.8.4 it starts",
        "I had rolled back vllm 0.8.5, and it starts",
    ],
)
def test_advice_and_what_was_refused_tell_of_nothing_installed(read, text):
    vllm = read(text).distribution("vllm")
    assert vllm is None or (vllm.version is None and not vllm.specifier)
