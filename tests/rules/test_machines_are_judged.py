"""Every recorded machine gets the answer that its file is named for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from declared import errors, found

from envdoctor.facts import from_json

MACHINES = Path(__file__).parent.parent / "machines"
HEALTHY = sorted((*MACHINES.glob("healthy-*.json"), MACHINES / "no-gpu-nothing-installed.json"))


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_machine_has_notes_at_most(path: Path) -> None:
    findings = found(from_json(json.loads(path.read_text(encoding="utf-8"))))
    assert {f.id for f in findings.values() if f.severity.value != "note"} == set()


@pytest.mark.parametrize(
    "path", sorted(MACHINES.glob("*-deepspeed-without-pydantic.json")), ids=lambda path: path.stem
)
def test_the_h200_has_the_one_error_that_is_true_there(path: Path) -> None:
    assert len(errors(from_json(json.loads(path.read_text(encoding="utf-8"))))) == 1
