"""Mutants of everything that others send end in an answer or in one of our errors, in time and memory.

Here a few of each kind; `python -m benchmarks.hostile --mutants 500000` meets as many as there is time for.
"""

from __future__ import annotations

import os
import random

import pytest
from mutants import Room

KINDS = (
    *("facts", "pastes", "logs", "configs", "deepspeed", "requirements", "manifests", "arguments", "bundles"),
    *("shared", "nodes", "baselines", "pages", "wheels", "children"),
)
DEAR = ("nodes", "baselines", "shared")
COUNT = int(os.environ.get("ENVDOCTOR_MUTANTS", "15"))


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    return Room(tmp_path_factory.mktemp("mutants"))


def test_every_kind_is_met(room):
    assert tuple(room.kinds) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_is_answered_or_refused(room, kind):
    for number in range(COUNT // 5 if kind in DEAR else COUNT):
        room.meet(random.Random(f"{kind} {number}"), kind)
