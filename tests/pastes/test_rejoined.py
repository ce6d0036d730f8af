"""An error line that a terminal or a form broke in two is read as the one line that it was."""

from __future__ import annotations

import pytest

from envdoctor.matrix import load_matrix
from envdoctor.pastes.reader import parse_paste

LINE = "NVIDIA H100 PCIe with CUDA capability sm_90 is not compatible with the current PyTorch installation."


@pytest.mark.parametrize("at", [place for place, letter in enumerate(LINE) if letter == " "][4:])
def test_wherever_it_is_broken_it_tells_the_same(at: int) -> None:
    broken = f"{LINE[:at]}\n{LINE[at + 1 :]}\n"
    (met,) = parse_paste(broken, "", load_matrix().lexicon).symptoms
    assert (met.id, met.captured["cc"]) == ("SYM-CAPABILITY-UNSUPPORTED", "sm_90")


@pytest.mark.parametrize(
    "text",
    [
        "The training finished.\nwith CUDA capability sm_90 is not compatible with the current PyTorch",
        "NVIDIA H100 with CUDA\n\ncapability sm_90 is not compatible with the current PyTorch installation",
        "NVIDIA H100 with CUDA\n- capability sm_90 is not compatible with the current PyTorch installation",
    ],
)
def test_what_ends_or_begins_anew_is_not_joined(text: str) -> None:
    met = parse_paste(text, "", load_matrix().lexicon).symptoms
    assert "H100" not in str([one.captured for one in met])


def test_what_runs_over_from_one_joined_line_into_another_is_none() -> None:
    """Broken lines that stand apart are not read as neighbours, whatever a pattern runs over."""
    text = (
        "cannot import name of the gears and\nthe words cannot import name\n\n# apart\n\n"
        "'Gear' from 'gears.wheels' is what it\nsays in here\n"
    )
    assert parse_paste(text, "", load_matrix().lexicon).symptoms == ()
