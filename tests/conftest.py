"""Options that let tests reach for what most machines lack."""

from __future__ import annotations

import pytest

_OPTIONS = {
    "gpu": "an NVIDIA GPU",
    "network": "the package index",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, need in _OPTIONS.items():
        parser.addoption(f"--{name}", action="store_true", help=f"run the tests that need {need}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for name, need in _OPTIONS.items():
        if not config.getoption(f"--{name}"):
            skip = pytest.mark.skip(reason=f"needs {need} (--{name})")
            for item in items:
                if name in item.keywords:
                    item.add_marker(skip)
