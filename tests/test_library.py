"""The library as a framework calls it: in its own env command, or in an exception hook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import envdoctor
from envdoctor.errors import InputError

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


def test_bundle_is_a_function_before_and_after_its_room_was_imported(paste: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    envdoctor.bundle(first, [paste])
    import envdoctor.bundling as room

    assert room.read_bundle(first)
    envdoctor.bundle(second, [paste])
    assert first.read_bytes() == second.read_bytes()


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
