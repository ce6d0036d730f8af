"""The fake index that the tests of this room read from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_index import FakeIndex


@pytest.fixture
def index() -> Iterator[FakeIndex]:
    server = FakeIndex()
    yield server
    server.close()
