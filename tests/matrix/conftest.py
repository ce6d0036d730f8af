"""The fake index that the tests of this room read from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_index import FakeIndex


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--network", default=False):
        return
    for item in items:
        if item.get_closest_marker("network"):
            item.add_marker(pytest.mark.skip(reason="needs the package index (--network)"))


@pytest.fixture
def index() -> Iterator[FakeIndex]:
    server = FakeIndex()
    yield server
    server.close()
