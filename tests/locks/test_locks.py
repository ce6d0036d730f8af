"""Locks of seven formats: what an installation from them puts in, and what is left out."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from envdoctor.cli import main
from envdoctor.errors import InputError
from envdoctor.inputs import is_lock
from envdoctor.locks.reading import parse_lock, read_lock
from envdoctor.pastes.locks import read_lock_facts

UV = """
version = 1
requires-python = ">=3.10"

[[package]]
name = "colorama"
version = "0.4.6"
source = { registry = "https://example.com/simple" }

[[package]]
name = "demo"
version = "0.1.0"
source = { editable = "." }
dependencies = [
    { name = "colorama", marker = "sys_platform == 'win32'" },
    { name = "numpy", version = "2.2.6", marker = "python_full_version < '3.11'" },
    { name = "numpy", version = "2.3.1", marker = "python_full_version >= '3.11'" },
    { name = "torch", extra = ["opt"] },
]

[package.optional-dependencies]
serve = [{ name = "vllm" }]

[package.dev-dependencies]
dev = [{ name = "pytest" }]

[[package]]
name = "numpy"
version = "2.2.6"
source = { registry = "https://example.com/simple" }

[[package]]
name = "numpy"
version = "2.3.1"
source = { registry = "https://example.com/simple" }

[[package]]
name = "optree"
version = "0.16.0"
source = { registry = "https://example.com/simple" }

[[package]]
name = "pytest"
version = "8.4.0"
source = { registry = "https://example.com/simple" }

[[package]]
name = "torch"
version = "2.7.0+cu128"
source = { registry = "https://example.com/whl/cu128" }

[package.optional-dependencies]
opt = [{ name = "optree" }]

[[package]]
name = "vllm"
version = "0.9.1"
source = { registry = "https://example.com/simple" }
"""
POETRY = """
[[package]]
name = "torch"
version = "2.7.0"
optional = false
groups = ["main"]

[[package]]
name = "pywin32"
version = "310"
optional = false
groups = ["main"]
markers = "sys_platform == \\"win32\\""

[[package]]
name = "pytest"
version = "8.4.0"
optional = false
groups = ["dev"]

[[package]]
name = "peft"
version = "0.15.0"
optional = false
groups = ["main"]

[package.source]
type = "git"
url = "https://example.com/peft"

[metadata]
lock-version = "2.1"
python-versions = "^3.11"
"""
OLD_POETRY = """
[[package]]
name = "tqdm"
version = "4.66.0"
optional = false

[package.dependencies]
colorama = {version = "*", markers = "platform_system == \\"Windows\\""}

[[package]]
name = "colorama"
version = "0.4.6"
optional = false

[[package]]
name = "grpcio"
version = "1.62.3"
optional = false
python-versions = ">=3.7"

[[package]]
name = "grpcio"
version = "1.73.0"
optional = false
python-versions = ">=3.10"

[[package]]
name = "poetry"
version = "1.7.1"
optional = false

[package.dependencies]
cleo = ">=2.1.0"
poetry-plugin-export = ">=1.6.0"

[[package]]
name = "poetry-plugin-export"
version = "1.6.0"
optional = false

[package.dependencies]
poetry = ">=1.6.0"

[[package]]
name = "cleo"
version = "2.1.0"
optional = false

[metadata]
lock-version = "2.0"
python-versions = ">=3.9,<4.0"
"""
PDM = """
[metadata]
lock_version = "4.5.0"

[[metadata.targets]]
requires_python = "==3.11.*"

[[package]]
name = "torch"
version = "2.7.0"
requires_python = ">=3.9"
groups = ["default"]

[[package]]
name = "tomli"
version = "2.2.1"
groups = ["default"]
marker = "python_version < \\"3.11\\""

[[package]]
name = "pytest"
version = "8.4.0"
groups = ["test"]
"""
PYLOCK = """
lock-version = "1.0"
requires-python = ">=3.12"

[[packages]]
name = "torch"
version = "2.7.0"

[[packages]]
name = "pytest"
version = "8.4.0"
marker = "'dev' in dependency_groups"

[[packages]]
name = "local"
directory = { path = ".", editable = true }
"""
PIPFILE = """
{
    "_meta": {"requires": {"python_version": "3.11"}},
    "default": {
        "torch": {
            "version": "==2.7.0"
        },
        "pywin32": {
            "markers": "sys_platform == 'win32'",
            "version": "==310"
        }
    },
    "develop": {
        "pytest": {
            "version": "==8.4.0"
        }
    }
}
"""
PIXI = """
version: 6
environments:
  default:
    packages:
      osx-arm64:
      - conda: https://example.com/conda-forge/osx-arm64/python-3.12.3-h1_0_cpython.conda
      linux-64:
      - conda: https://example.com/conda-forge/linux-64/python-3.12.4-h2_0_cpython.conda
      - conda: https://example.com/conda-forge/linux-64/pytorch-2.6.0-cuda126_py312_1.conda
      - pypi: https://example.com/peft-0.15.0-py3-none-any.whl
      - pypi: arms
packages:
- conda: https://example.com/conda-forge/osx-arm64/python-3.12.3-h1_0_cpython.conda
  sha256: aa
- conda: https://example.com/conda-forge/linux-64/python-3.12.4-h2_0_cpython.conda
  sha256: bb
- conda: https://example.com/conda-forge/linux-64/pytorch-2.6.0-cuda126_py312_1.conda
  sha256: cc
- pypi: https://example.com/peft-0.15.0-py3-none-any.whl
  name: peft
  version: 0.15.0
- kind: pypi
  name: arms
  version: 0.0.0
  path: arms
"""
CONDA_LOCK = """
version: 1
metadata:
  platforms:
  - osx-64
  - linux-64
package:
- name: python
  version: 3.11.9
  manager: conda
  platform: osx-64
  category: main
- name: python
  version: 3.11.8
  manager: conda
  platform: linux-64
  url: https://example.com/conda-forge/linux-64/python-3.11.8-h1_0.conda
  category: main
- name: pytest
  version: 8.4.0
  manager: conda
  platform: linux-64
  category: dev
- name: peft
  version: 0.15.0
  manager: pip
  platform: linux-64
  category: main
"""


def held(folder: Path, name: str, text: str) -> dict[str, str | None]:
    (folder / name).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return {one.name: one.version for one in read_lock(folder / name).packages}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "uv.lock",
            UV,
            {"demo": "0.1.0", "numpy": "2.2.6", "optree": "0.16.0", "torch": "2.7.0+cu128"},
        ),
        ("poetry.lock", POETRY, {"torch": "2.7.0", "peft": "0.15.0"}),
        (
            "poetry.lock",
            OLD_POETRY,
            {
                "tqdm": "4.66.0",
                "grpcio": "1.62.3",
                "poetry": "1.7.1",
                "poetry-plugin-export": "1.6.0",
                "cleo": "2.1.0",
            },
        ),
        ("pdm.lock", PDM, {"torch": "2.7.0"}),
        ("pylock.toml", PYLOCK, {"torch": "2.7.0", "local": None}),
        ("Pipfile.lock", PIPFILE, {"torch": "2.7.0"}),
        ("pixi.lock", PIXI, {"python": "3.12.4", "pytorch": "2.6.0", "peft": "0.15.0", "arms": "0.0.0"}),
        ("conda-lock.yml", CONDA_LOCK, {"python": "3.11.8", "peft": "0.15.0"}),
    ],
)
def test_a_lock_puts_in_what_its_tool_installs_on_linux(
    tmp_path: Path, name: str, text: str, expected: dict[str, str | None]
) -> None:
    assert held(tmp_path, name, text) == expected


def test_the_default_groups_of_a_pylock_are_put_in(tmp_path: Path) -> None:
    """As pdm writes it: what nothing but a group brings has a marker on that group."""
    text = """
lock-version = "1.0"
default-groups = ["default"]

[[packages]]
name = "torch"
version = "2.7.0"
marker = "\\"default\\" in dependency_groups"

[[packages]]
name = "pytest"
version = "9.0.0"
marker = "\\"dev\\" in dependency_groups or \\"test\\" in extras"
"""
    assert held(tmp_path, "pylock.toml", text) == {"torch": "2.7.0"}


def test_what_pixi_builds_of_the_project_has_its_own_form_since_version_7(tmp_path: Path) -> None:
    text = """
version: 7
environments:
  default:
    packages: {}
  tools:
    packages:
      linux-64:
      - conda_source: root[444b3894] @ src/root
      - conda: https://conda.anaconda.org/conda-forge/linux-64/boltons-25.0.0-pyhd8ed1ab_0.conda
      - conda: https://conda.anaconda.org/conda-forge/noarch/r-boot-1.3_31-r44hc72bb7e_0.conda
packages:
- conda: https://conda.anaconda.org/conda-forge/noarch/r-boot-1.3_31-r44hc72bb7e_0.conda
  version: 1.3_31
- conda_source: root[444b3894] @ src/root
  depends:
  - boltons
- conda: https://conda.anaconda.org/conda-forge/linux-64/boltons-25.0.0-pyhd8ed1ab_0.conda
"""
    assert held(tmp_path, "pixi.lock", text) == {"root": None, "boltons": "25.0.0", "r-boot": "1.3_31"}
    nothing = "version: 7\nenvironments:\n  default:\n    packages: {}\n"
    assert held(tmp_path, "pixi.lock", nothing) == {}


def test_a_source_of_pixi_is_a_package_though_it_is_no_file_of_conda(tmp_path: Path) -> None:
    text = """
version: 6
environments:
  default:
    packages:
      linux-64:
      - conda: .
      - pypi: detr
packages:
- conda: .
  name: own-tool
  version: 1.0.9
  build: pyh4616a5c_0
- kind: pypi
  name: detr
  version: 0.0.0
  path: detr
"""
    assert held(tmp_path, "pixi.lock", text) == {"own-tool": "1.0.9", "detr": "0.0.0"}


def test_each_package_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.lstrip("\n"), encoding="utf-8")
    lock = read_lock(tmp_path / "uv.lock")
    lines = UV.lstrip("\n").splitlines()
    for package in lock.packages:
        assert lines[package.line - 1] == "[[package]]"
        assert lines[package.line] == f'name = "{package.name}"'


def test_a_lock_is_known_by_its_name() -> None:
    assert all(map(is_lock, ("a/uv.lock", "pylock.gpu.toml", "train.py.lock", "gpu.conda-lock.yml")))
    assert not any(map(is_lock, ("Cargo.lock", "yarn.lock", "requirements.txt", "pylock.txt")))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", "[[package]\n"),
        ("uv.lock", '[[package]]\nversion = "1"\n'),
        ("pixi.lock", "a: [b"),
        ("Pipfile.lock", "{"),
        ("conda-lock.yml", "package: []\n"),
        ("poetry.lock", '[[package]]\nname = "a"\ngroups = ["main"]\nmarkers = "no marker"\n'),
    ],
)
def test_what_is_no_lock_is_refused_in_one_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=name) as caught:
        read_lock(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_lock_is_diagnosed_as_an_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "uv.lock").write_text(UV.lstrip("\n"), encoding="utf-8")
    code = main(["diagnose", "--from", str(tmp_path / "uv.lock"), "--gpu", "P100"])
    told = capsys.readouterr().out
    assert code == 1
    assert "uv.lock, line" in told


def test_a_lock_is_a_request_for_what_it_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Pipfile.lock").write_text(PIPFILE, encoding="utf-8")
    words = ("--python-version", "3.11", "--platform", "x86_64-manylinux_2_28", "--offline")
    code = main(["pin", "-r", str(tmp_path / "Pipfile.lock"), "--format", "json", *words])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [pin["version"] for pin in told["pins"] if pin["name"] == "torch"] == ["2.7.0"]


def test_a_lock_of_conda_tells_the_python_and_the_build_of_torch(tmp_path: Path) -> None:
    (tmp_path / "pixi.lock").write_text(PIXI.lstrip("\n"), encoding="utf-8")
    facts = read_lock_facts(str(tmp_path / "pixi.lock"), "")
    assert facts.environment.python.get() == "3.12.4"
    assert facts.environment.builds["torch"]["cuda"] == "12.6"
    assert facts.distribution("torch").origin == "conda"  # type: ignore[union-attr]
    assert facts.distribution("arms").origin == "file"  # type: ignore[union-attr]


def test_groups_that_a_project_may_install_by_default_are_named() -> None:
    text = UV.replace('dev = [{ name = "pytest" }]', 'dev = []\ncuda = [{ name = "pytest" }]')
    assert parse_lock("uv.lock", UV).notes == ()
    assert "the groups cuda are not read" in parse_lock("uv.lock", text).notes[0]


def test_a_lock_of_one_python_is_read_for_that_one() -> None:
    wheel = '[[packages]]\nname = "numpy"\nversion = "2.3.0"\n[[packages.wheels]]\nurl = "https://h/{}"\n'
    exact = wheel.format("numpy-2.3.0-cp313-cp313-manylinux_2_17_x86_64.whl")
    assert parse_lock("pylock.toml", exact).read_for.startswith("Python 3.13 ")
    stable = wheel.format("numpy-2.3.0-cp310-abi3-manylinux_2_17_x86_64.whl")
    assert parse_lock("pylock.toml", stable).read_for.startswith("Python 3.10 ")
    single = '[[package]]\nname = "numpy"\nversion = "2.3.0"\n[metadata]\npython-versions = "3.11.5"\n'
    assert parse_lock("poetry.lock", single).read_for.startswith("Python 3.11 ")


def test_a_project_that_requires_nothing_itself_brings_nothing() -> None:
    lock = '[[package]]\nname = "tool"\nversion = "1"\n[metadata]\npython-versions = "^3.9"\n'
    assert parse_lock("poetry.lock", lock, '[tool.poetry.dependencies]\npython = "^3.9"\n').packages == ()
