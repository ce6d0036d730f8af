"""Listings tell versions; a whole one tells also what is absent."""

from __future__ import annotations

import pytest

TABLE = "Package      Version\n------------ -----------\n"
ROWS = "".join(f"package-{letter}    1.{i}.0\n" for i, letter in enumerate("abcdefghijkl"))
WHOLE = "".join(f"{letter}-package    1.{i}.0\n" for i, letter in enumerate("abcdefghijklmno"))
WHOLE += "pip    24.0\n" + "".join(f"{letter}-package    2.0\n" for letter in "qrstuvwxyz")


def test_pip_freeze_is_whole(read, sample):
    facts = read(sample("h200-pip_freeze.txt"))
    assert len(facts.environment.distributions) == 201
    assert facts.environment.complete
    assert facts.distribution("transformers").source == "pip freeze, line 186"
    assert facts.distribution("packaging").version == "26.3"


def test_pip_list_may_be_whole_unless_shortened(read):
    assert read(TABLE + WHOLE).environment.complete
    assert not read(TABLE + WHOLE + "...\n").environment.complete
    assert not read(TABLE + "torch   2.1.0+cu121\n").environment.complete


def test_a_table_without_pip_itself_is_an_excerpt(read):
    assert not read(TABLE + WHOLE.replace("pip ", "pipes ")).environment.complete
    assert not read(TABLE + ROWS).environment.complete


def test_pip_list_cites_its_lines(read):
    torch = read("some words\n\n" + TABLE + "torch        2.1.0+cu121\n" + ROWS).distribution("torch")
    assert torch.source == "pip list, line 5"


def test_pip_list_with_editable_projects(read):
    header = "Package   Version   Editable project location\n--------- --------- ----------\n"
    facts = read(header + "llamafactory   0.8.4.dev0   /home/u/LLaMA-Factory\n" + ROWS)
    assert facts.distribution("llamafactory").editable


def test_markdown_table(read):
    facts = read("| Package | Version |\n|---|---|\n| **torch** | `2.4.0` |\n| GPU | NVIDIA L40S |\n")
    assert facts.distribution("torch").version == "2.4.0"
    assert facts.gpus.value[0].name == "NVIDIA L40S"


def test_columns_without_a_header(read):
    facts = read(
        "pytorch-triton           3.0.0+dedb7bdf33\ntorch                    2.5.0.dev20240720+cu124\n"
    )
    assert facts.distribution("torch").version == "2.5.0.dev20240720+cu124"
    assert facts.environment.builds["torch"]["cuda"] == "12.4"


def test_conda_list(read, sample):
    facts = read(sample("conda_list.txt"))
    assert facts.distribution("torch").origin == "conda"
    assert facts.environment.builds["torch"]["cuda"] == "11.8"
    assert facts.distribution("transformers").origin is None
    assert facts.environment.python.value == "3.10.13"
    assert facts.toolkits.get() is None


def test_requirements_ask_for_versions_and_ranges(read):
    facts = read(
        "torch==2.0.0\ntransformers>=4.31,<4.40  # chat\npeft~=0.4.0\nbitsandbytes\n"
        'flash-attn==2.5.6 ; platform_system != "Windows"\n'
        "accelerate @ https://host.example/accelerate-0.21.0-py3-none-any.whl\n",
        "requirements.txt",
    )
    told = {name: d.version or d.specifier for name, d in facts.environment.distributions.items()}
    assert told == {
        "torch": "2.0.0",
        "transformers": "<4.40,>=4.31",
        "peft": "~=0.4.0",
        "bitsandbytes": "",
        "flash-attn": "2.5.6",
        "accelerate": "0.21.0",
    }
    assert facts.distribution("torch").source == "requirements, line 1"
    assert not facts.environment.complete


def test_pylock(read):
    facts = read(
        'lock-version = "1.0"\n[[packages]]\nname = "torch"\nversion = "2.7.1+cu126"\n', "pylock.toml"
    )
    assert facts.distribution("torch").version == "2.7.1+cu126"


def test_pip_says_what_is_installed_and_what_is_required(read):
    facts = read(
        "vllm 0.10.0 requires transformers>=4.53.2, but you have transformers 4.40.0 which is incompatible."
    )
    told = {symptom.id: symptom.captured for symptom in facts.symptoms}
    assert told["SYM-PIP-INCOMPATIBLE"]["installed"] == "4.40.0"
    assert told["SYM-REQUIRES-SAID"]["who"] == "vllm 0.10.0"
    assert facts.distribution("transformers").version == "4.40.0"
    assert facts.distribution("vllm").version == "0.10.0"


@pytest.mark.parametrize(
    "line", ["pip install torch==2.0.0", "No matching distribution found for torch==1.13.1+cu117"]
)
def test_what_is_wished_for_is_not_installed(read, line):
    torch = read(line).distribution("torch")
    assert torch is None or torch.version is None
