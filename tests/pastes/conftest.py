"""The rows of the matrix that readers of pastes use, and a reader with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envdoctor.facts import Facts
from envdoctor.matrix.load import load_matrix
from envdoctor.pastes import KeyName, SymptomPattern, key_names, parse_paste, symptom_patterns

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def symptoms() -> tuple[SymptomPattern, ...]:
    return symptom_patterns(load_matrix().rows("symptom"))


@pytest.fixture(scope="session")
def keys() -> tuple[KeyName, ...]:
    return key_names(load_matrix().rows("key"))


@pytest.fixture(scope="session")
def read(symptoms: tuple[SymptomPattern, ...], keys: tuple[KeyName, ...]) -> Callable[..., Facts]:
    def parse(text: str, file_name: str = "") -> Facts:
        return parse_paste(text, "", symptoms, keys, file_name)

    return parse


@pytest.fixture(scope="session")
def sample() -> Callable[[str], str]:
    return lambda name: (SAMPLES / name).read_text(encoding="utf-8")
