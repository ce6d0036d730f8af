"""Warnings are read without their level, place and time; other lines are none."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("line", "text", "file"),
    [
        (
            "/v/site-packages/peft/tuners/lora/bnb.py:336: UserWarning: Merge lora module to 4-bit linear",
            "Merge lora module to 4-bit linear",
            "/v/site-packages/peft/tuners/lora/bnb.py",
        ),
        (
            "[WARNING|modeling_utils.py:1234] 2024-05-01 10:11:12,131 >> Some weights were not initialized",
            "Some weights were not initialized",
            "",
        ),
        (
            "(APIServer pid=12) WARNING 07-02 01:43:33 [utils.py:101] Unable to detect current VLLM config.",
            "Unable to detect current VLLM config.",
            "",
        ),
        (
            "> We detected that this argument is deprecated.",
            "We detected that this argument is deprecated.",
            "",
        ),
    ],
)
def test_what_a_line_warns_of(read, line, text, file):
    assert [(seen.text, seen.file) for seen in read(line).warnings] == [(text, file)]


@pytest.mark.parametrize(
    "line", ["WARNING: too short", "INFO 07-02 01:43:33 [utils.py:101] Loading weights took"]
)
def test_what_warns_of_nothing(read, line):
    assert not read(line).warnings
