"""The rows of the matrix that readers of pastes use, and a reader with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envdoctor.facts import Facts
from envdoctor.matrix import tables
from envdoctor.matrix.load import load_matrix
from envdoctor.pastes import parse_paste

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def symptoms() -> tuple[tables.SymptomRow, ...]:
    return load_matrix().rows(tables.SymptomRow)


@pytest.fixture(scope="session")
def read() -> Callable[..., Facts]:
    def parse(text: str, file_name: str = "") -> Facts:
        return parse_paste(text, "", load_matrix().lexicon, file_name)

    return parse


@pytest.fixture(scope="session")
def sample() -> Callable[[str], str]:
    return lambda name: (SAMPLES / name).read_text(encoding="utf-8")
