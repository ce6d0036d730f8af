"""The rows that readers of pastes use, a reader with them, and the record of what is read (`read.tsv`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from answers import Answers
from test_lines import told

from envdoctor.facts import Facts
from envdoctor.matrix import tables
from envdoctor.matrix.load import load_matrix
from envdoctor.pastes import parse_paste

sys.path[:0] = [str(Path(__file__).parents[1] / "bundle")]
"""Where texts are drawn from patterns."""
SAMPLES = Path(__file__).parent / "samples"
ANSWERS = Answers(
    Path(__file__).parent / "read.tsv",
    ("parse_paste", "parse_text", "read_files"),
    lambda facts: [told(facts)],
)


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


@pytest.fixture(autouse=True)
def answers_are_on_record(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from ANSWERS.compare(request, monkeypatch, sys.modules[__name__])


def pytest_sessionfinish() -> None:
    ANSWERS.write()
