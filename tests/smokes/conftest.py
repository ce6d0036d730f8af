"""A world of tiny faults: a stand-in for torch, and a third party's ops that each break in one way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.smokes import run_smokes

HERE = Path(__file__).parent


@pytest.fixture
def faulty(monkeypatch):
    """Our own interpreter, with a fake torch and the fault ops on its path."""
    monkeypatch.setenv("PYTHONPATH", f"{HERE / 'plugins'}{os.pathsep}{HERE / 'fake_torch'}")
    monkeypatch.delenv("FAKE_TORCH", raising=False)
    return sys.executable


@pytest.fixture
def verdicts(faulty):
    """Run fault ops side by side in one lane and return the results by op, without their prefix."""

    def run(*names, timeout_s=3.0, **options):
        select = tuple(f"fault.{name}" for name in names)
        report = run_smokes(faulty, select, "cpu", timeout_s, **options)
        return {result.op.removeprefix("fault."): result for result in report.results}

    return run


@pytest.fixture(scope="session")
def torch_python():
    """An interpreter with a real torch: ENVDOCTOR_TEST_PYTHON, or our own."""
    for python in filter(None, (os.environ.get("ENVDOCTOR_TEST_PYTHON"), sys.executable)):
        probe = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
        if subprocess.run([python, "-c", probe]).returncode == 0:
            return python
    pytest.skip("no interpreter with torch: set ENVDOCTOR_TEST_PYTHON to one")
