"""The library as a framework calls it: in its own env command, or in an exception hook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import library_program
import pytest

import envdoctor
from envdoctor.errors import InputError

ROOT = Path(__file__).parents[1]
PASTE = "trl==0.7.11\ntransformers==4.40.1\n"


@pytest.fixture
def paste(tmp_path: Path) -> str:
    path = tmp_path / "freeze.txt"
    path.write_text(PASTE, encoding="utf-8")
    return str(path)


def test_diagnose_returns_a_value(paste: str) -> None:
    diagnosis = envdoctor.diagnose([paste])
    assert diagnosis.exit_code == 1
    assert "PAIR-TRL-BELOW-0.8" in [finding.id for finding in diagnosis.findings]
    assert json.dumps(diagnosis.to_json())


def test_a_strictly_typed_program_may_use_the_whole_door() -> None:
    program = ROOT / "tests" / "library_program.py"
    used = set(re.findall(r"envdoctor\.(\w+)", program.read_text(encoding="utf-8")))
    assert used | {"__version__"} == set(envdoctor.__all__)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(program)]
    done = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_program_has_answers_and_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = library_program.main(tmp_path)
    assert told["cards"] == ["Tesla T4"]
    assert told["evidence"]
    assert told["remedies"]
    assert "torch" in str(told["pins"])
    assert told["causes"]
    assert told["fits"] is True
    assert told["files"]
    assert told["bundled"] == told["shown"]
    assert told["broken"] in (1, 3)
    assert "missing.txt" in str(told["refused"])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", sorted(set(envdoctor.__all__) - {"__version__"}))
def test_each_public_name_is_documented_and_no_room(name: str) -> None:
    found = getattr(envdoctor, name)
    assert not isinstance(found, ModuleType)
    assert found.__doc__
    if isinstance(found, FunctionType):
        assert f"envdoctor.{name}(" in found.__doc__, "an example"
        assert "return" in found.__annotations__


def test_no_function_of_the_door_is_shadowed_by_a_room() -> None:
    rooms = {path.stem for path in (ROOT / "envdoctor").iterdir()}
    assert rooms.isdisjoint(envdoctor.__all__)


def test_an_existing_bundle_is_not_overwritten(paste: str, tmp_path: Path) -> None:
    path = tmp_path / "report.zip"
    envdoctor.bundle(path, [paste])
    with pytest.raises(InputError, match=r"report\.zip"):
        envdoctor.bundle(path, [paste])
    envdoctor.bundle(path, [paste], force=True)


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, envdoctor; print(sorted(m for m in sys.modules if m.startswith('envdoctor')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['envdoctor']"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = envdoctor.nonsense
