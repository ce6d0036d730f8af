"""Words in brackets, or behind a label where they tell of a lack, are words of a person: no clean bill."""

from __future__ import annotations

import pytest

from envdoctor.facts import NOT_JUDGED
from envdoctor.matrix import load_matrix
from envdoctor.pastes.reader import parse_paste


def told(line: str) -> bool:
    facts = parse_paste(f"gpu: A6000\n\n{line}\n", "", load_matrix().lexicon)
    return any(note.startswith(NOT_JUDGED) for note in facts.notes)


@pytest.mark.parametrize(
    "line",
    [
        "(60 GB taken after loading the models; batch size 4 fills the memory)",
        "(no trouble seen; the adapter that it writes is empty)",
        "GearLinear: missing the lever that it was given before with gears 0.7 (teeth 0.19)",
    ],
)
def test_such_words_are_noted(line: str) -> None:
    assert told(line)


@pytest.mark.parametrize(
    "line",
    ["(base) user@host:~$ python train.py --model gears", "Our CI passes: 312 passed, 0 failed, 4 skipped"],
)
def test_prompts_and_sound_runs_are_not(line: str) -> None:
    assert not told(line)
