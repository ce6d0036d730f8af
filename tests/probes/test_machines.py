from __future__ import annotations

import json
from pathlib import Path

import pytest

from envdoctor.facts import from_json, to_json

MACHINES = sorted((Path(__file__).parent.parent / "machines").glob("*.json"))


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_a_recorded_machine_is_facts_in_their_canonical_form(path):
    recorded = json.loads(path.read_text())
    assert to_json(from_json(recorded)) == recorded


def test_the_h200_has_deepspeed_and_not_its_pydantic():
    path = next(path for path in MACHINES if path.stem == "h200-deepspeed-without-pydantic")
    facts = from_json(json.loads(path.read_text()))
    deepspeed = facts.distribution("deepspeed")
    assert deepspeed is not None
    assert "pydantic>=2.0.0" in deepspeed.requires
    assert facts.environment.complete
    assert facts.distribution("pydantic") is None
