"""Pins in the files of other tools, and what was decided in a few lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from envdoctor.cli import main
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.solve import pylock
from envdoctor.solve.answer import PinSet
from envdoctor.solve.documents import Header, requirements_text
from envdoctor.solve.pylock import hashes_of
from envdoctor.solve.reasons import Pin
from envdoctor.solve.summary import summary_lines
from envdoctor.target.platforms import parse_platform
from envdoctor.target.resolve import Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ON = ("--python-version", "3.11", "--platform", "x86_64-manylinux_2_35", "--offline")
OLD_DRIVER = ("--gpu", "A100", "--driver", "550.54.15")
HEADER = Header("0", "m", "2026-01-01", "envdoctor pin")


def written(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["pin", *words, *ON]) == 0
    return capsys.readouterr().out


def test_an_environment_of_conda_leaves_all_that_is_pinned_to_pip(capsys: pytest.CaptureFixture[str]) -> None:
    told: Any = yaml.safe_load(
        written(capsys, "torch", "vllm[audio]<1", "--format", "environment", *OLD_DRIVER)
    )
    python, pip, listed = told["dependencies"]
    assert (python, pip) == ("python=3.11", "pip")
    assert any(one.startswith("vllm[audio]==") for one in listed["pip"])
    assert all(isinstance(one, str) for one in listed["pip"])


def test_uv_s_tables_take_a_variant_from_its_own_index_alone(capsys: pytest.CaptureFixture[str]) -> None:
    told = tomllib.loads(written(capsys, "torch", "torchvision", "--format", "uv", *OLD_DRIVER))["tool"]["uv"]
    index = told["index"][0]
    assert index["explicit"]
    assert told["sources"]["torch"] == told["sources"]["torchvision"] == {"index": index["name"]}
    assert any(one.startswith("torch==") and "+cu" in one for one in told["constraint-dependencies"])
    assert told["environments"] == ["sys_platform == 'linux' and platform_machine == 'x86_64'"]


def test_every_file_that_installs_is_hashed() -> None:
    target = Target((3, 11), parse_platform("x86_64-manylinux_2_28"))
    answer = PinSet("solved", target, ("one",), (Pin("one", "1.0", None, ("asked for",)),))
    names = ("one-1.0-py3-none-any.whl", "one-1.0-cp39-cp39-win_amd64.whl", "one-1.0.tar.gz")
    files = [
        IndexFile(name, "1.0", f"https://example.com/{name}", sha256=str(place) * 64)
        for place, name in enumerate(names)
    ]
    text = requirements_text(answer, HEADER, hashes_of(answer, lambda pin: files))
    assert text.endswith("one==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n")
    assert "one==1.0\n" in requirements_text(answer, HEADER)
    assert pylock.hashes_of(answer, lambda pin: files[2:]) == {"one": ["2" * 64]}


def test_what_was_decided_is_said_in_eight_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "constraints.txt")
    assert main(["pin", "torch", "numpy<2", "transformers<5", "-o", file, *OLD_DRIVER, *ON]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) <= 8
    assert lines[0].startswith("solved: ")
    assert "driver 550.54.15" in lines[0]
    assert lines[1].startswith("torch: ")
    assert lines[-1] == f"    or:  python -m pip install torch 'numpy<2' 'transformers<5' -c {file}"


def test_a_set_without_torch_says_nothing_of_it() -> None:
    answer = PinSet("solved", Target((3, 11), parse_platform("windows")), ("one",))
    assert not any(line.startswith("torch") for line in summary_lines(answer, ""))


def test_a_torch_that_nobody_named_says_why_it_is_not_the_newest(capsys: pytest.CaptureFixture[str]) -> None:
    lines = written(capsys, "accelerate", "--gpu", "A100", "--driver", "550.54.15").splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("torch=="))
    reasons = [line for line in lines[place + 1 : place + 9] if line.startswith("    # not ")]
    assert "+cu" in lines[place] or reasons
