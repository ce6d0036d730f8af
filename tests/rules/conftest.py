"""A small matrix to judge by, and the record of what else the tests here are told (`judged.tsv`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import declared
import pytest
from answers import Answers
from test_whole_findings import told

from envdoctor.matrix import Matrix, load_matrix

Row = dict[str, object]


def findings_told(answer: Any) -> list[str]:
    """Return the findings of a diagnosis, or of checks, one a line."""
    return [told(finding) for finding in (answer[1] if isinstance(answer, tuple) else answer.findings)]


ANSWERS = Answers(Path(__file__).parent / "judged.tsv", ("diagnose_facts", "run_checks"), findings_told)


@pytest.fixture
def matrix_of(tmp_path: Path) -> Callable[[str], Matrix]:
    """Return a function from TOML text to the matrix it makes."""

    def build(text: str) -> Matrix:
        (tmp_path / "rows.toml").write_text(text, encoding="utf-8")
        load_matrix.cache_clear()
        return load_matrix(tmp_path)

    return build


@pytest.fixture(autouse=True)
def answers_are_on_record(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from ANSWERS.compare(request, monkeypatch, declared)


def pytest_sessionfinish() -> None:
    ANSWERS.write()
