"""Options that let tests reach for what most machines lack."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Children start with compiled modules, as an installer leaves them, whatever the shell says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from hypothesis import HealthCheck, is_hypothesis_test, settings  # noqa: E402

from envdoctor.fact_files import find_folder  # noqa: E402
from envdoctor.matrix.load import read_compiled  # noqa: E402

HERE = Path(__file__).parent
_OPTIONS = {
    "gpu": "an NVIDIA GPU",
    "network": "the package index",
}

# The same examples everywhere and always, however slow the machine: a test that fails fails for everyone.
# `--examples N` draws anew.
settings.register_profile(
    "same",
    derandomize=True,
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--examples", type=int, metavar="N", help="draw N random examples for each property")
    for name, need in _OPTIONS.items():
        parser.addoption(f"--{name}", action="store_true", help=f"run the tests that need {need}")


def pytest_configure(config: pytest.Config) -> None:
    """Compile edited rows, once and before workers start: else each child would check them all."""
    folder = find_folder()
    if not hasattr(config, "workerinput") and not read_compiled(folder):
        compile_rows = [sys.executable, "-m", "envdoctor.matrix.compile"]
        done = subprocess.run(compile_rows, capture_output=True, text=True)
        if done.returncode:
            raise pytest.UsageError(done.stderr.strip())
    if config.getoption("numprocesses", None) and config.args_source is config.ArgsSource.TESTPATHS:
        _compile_tests()


def _compile_tests() -> None:
    """Compile a fresh checkout's tests once, two halves side by side: else each worker would compile all."""
    if any(HERE.rglob("__pycache__/test_*.pyc")):
        return
    sizes = {
        folder: sum(test.stat().st_size for test in folder.glob("test_*.py")) for folder in HERE.iterdir()
    }
    folders = sorted(filter(sizes.get, sizes), key=sizes.__getitem__)
    collect = [sys.executable, "-m", "pytest", "-q", "-n0", "--collect-only", "-p", "no:cacheprovider"]
    halves = [[*collect, *folders[half::2]] for half in range(2)]
    children = [subprocess.Popen(half, stdout=subprocess.DEVNULL) for half in halves]
    for child in children:
        child.wait()


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no collection walks it again (6 % of the time)."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for name, need in _OPTIONS.items():
        if not config.getoption(f"--{name}"):
            skip = pytest.mark.skip(reason=f"needs {need} (--{name})")
            for item in items:
                if name in item.keywords:
                    item.add_marker(skip)
    if count := config.getoption("--examples"):
        _draw_anew(items, count)


def _draw_anew(items: list[pytest.Item], count: int) -> None:
    for item in items:
        test = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            given = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(given, derandomize=False, max_examples=count)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: tests of children, deadlines and signals wait more than they work."""
    return (os.cpu_count() or 1) + 1
