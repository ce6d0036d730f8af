"""A small matrix to judge by, and the record of every answer that a test of this room is given.

A test asks for what it is about; `judged.tsv` holds what else it was told: the test, which of its answers,
and each finding. `ENVDOCTOR_RECORD=1 pytest -n0 tests/rules` writes the answers of the tests that ran anew,
and its diff says what is judged otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import declared
import pytest
from test_whole_findings import told

from envdoctor.matrix import Matrix, load_matrix

Row = dict[str, object]
RECORD = Path(__file__).parent / "judged.tsv"
ASKED = ("diagnose_facts", "run_checks")
"""The functions that judge, by the names under which tests import them."""
_written: dict[str, list[str]] = {}


@pytest.fixture
def matrix_of(tmp_path: Path) -> Callable[[str], Matrix]:
    """Return a function from TOML text to the matrix it makes."""

    def build(text: str) -> Matrix:
        (tmp_path / "rows.toml").write_text(text, encoding="utf-8")
        load_matrix.cache_clear()
        return load_matrix(tmp_path)

    return build


@cache
def on_record() -> dict[str, list[str]]:
    """Return the findings on record by test and answer."""
    found: dict[str, list[str]] = {}
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        name, _, said = line.partition("\t")
        found.setdefault(name, []).append(said)
    return found


@pytest.fixture(autouse=True)
def answers_are_on_record(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold what this test is told against the record, once it has ended."""
    given: dict[str, list[str]] = {}

    def listening(judge: Callable[..., Any]) -> Callable[..., Any]:
        def judged(*facts: Any, **how: Any) -> Any:
            answer = judge(*facts, **how)
            findings = answer[1] if isinstance(answer, tuple) else answer.findings
            lines = [told(f).replace("\t", " | ").replace("\n", " ") for f in findings] or ["nothing"]
            given[f"{request.path.name} {request.node.name} {len(given) + 1}".replace("\t", " ")] = lines
            return answer

        return judged

    if "tmp_path" not in request.fixturenames and not hasattr(request.module, "RECORD"):
        for module in (request.module, declared):
            for name in ASKED:
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, listening(getattr(module, name)))
    yield
    if os.environ.get("ENVDOCTOR_RECORD"):
        _written.update(given)
    else:
        assert given == {name: on_record().get(name) for name in given}


def pytest_sessionfinish() -> None:
    """Write the answers of the tests that ran, where that is asked."""
    if _written:
        held = {**(on_record() if RECORD.exists() else {}), **_written}
        lines = [f"{name}\t{said}" for name in sorted(held) for said in held[name]]
        RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")
