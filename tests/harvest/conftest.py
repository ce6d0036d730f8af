"""The fake index that the tests of this room read from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_index import FakeIndex

from envdoctor.cli import main


@pytest.fixture
def index() -> Iterator[FakeIndex]:
    server = FakeIndex()
    yield server
    server.close()


ON = ["--python-version", "3.11", "--platform", "x86_64-manylinux_2_35", "--format", "json"]


@dataclass
class Answer:
    code: int
    told: dict[str, Any]
    err: str
    pins: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.pins = {pin["name"]: pin["version"] for pin in self.told["pins"]}


@pytest.fixture
def pin(index: FakeIndex, capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*words: str) -> Answer:
        code = main(["pin", *words, "--index-url", index.url, *ON])
        out, err = capsys.readouterr()
        return Answer(code, json.loads(out), err)

    return run
