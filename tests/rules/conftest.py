"""A small matrix and facts to judge by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envdoctor.matrix import Matrix, load_matrix

Row = dict[str, object]


@pytest.fixture
def matrix_of(tmp_path: Path) -> Callable[[str], Matrix]:
    """Return a function from TOML text to the matrix it makes."""

    def build(text: str) -> Matrix:
        (tmp_path / "rows.toml").write_text(text, encoding="utf-8")
        load_matrix.cache_clear()
        return load_matrix(tmp_path)

    return build
