"""The situations that users came with, each an input and what must be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib  # type: ignore[no-redef]

from cards import GIB, found

FOLDER = Path(__file__).parents[1] / "scenarios" / "profile"


def agrees(choice: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(choice.get(key) == value for key, value in wanted.items())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda p: p.stem)
def test_the_situation_has_its_answer(path: Path) -> None:
    scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    asked, expected = dict(scenario["workload"]), scenario["expected"]
    beside = int(asked.pop("beside_gib", 0) * GIB)
    answer = found(asked.pop("model"), asked.pop("gpus"), beside_bytes=beside, **asked)
    assert (answer.choice is not None) is expected["fits"]
    choice = answer.choice.to_json() if answer.choice else {}
    for key in ("method", "parallel", "grad_ckpt", "dtype"):
        assert choice.get(key) in expected.get(key, [choice.get(key)])
    if "any" in expected:
        assert any(agrees(choice, wanted) for wanted in expected["any"]), choice
    if "utilization" in expected:
        low, high = expected["utilization"]
        assert low <= choice["vllm_utilization"] <= high
    rejected = [r.to_json()["choice"] for r in answer.rejected]
    for wanted in expected.get("rejected", ()):
        assert any(agrees(one, wanted) for one in rejected), (wanted, rejected)
