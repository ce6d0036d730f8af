"""What programs log by fields is read as what it says."""

from __future__ import annotations

import pytest

from envdoctor.pastes.log_fields import without_fields


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (
            'time=2024-11-09T18:44:42 level=WARN source=gpu.go:252 msg="GPU inference disabled" required=avx',
            "WARNING: GPU inference disabled required=avx",
        ),
        ('a | level=error msg="no \\"x\\"" err="exit status 2"', 'a | ERROR: no "x": exit status 2'),
        ('{"level":"fatal","ts":1,"msg":"no GPU","error":null,"gpus":0}', "FATAL: no GPU gpus=0"),
        ('{"log":"CUDA out of memory\\n","stream":"stderr","time":"t"}', "CUDA out of memory"),
        ("run.py --log level=3", "run.py --log level=3"),
        ('{"level": 3, "msg": "a record of data"}', '{"level": 3, "msg": "a record of data"}'),
        ('{"level": "error", "msg": ', '{"level": "error", "msg": '),
    ],
)
def test_a_line_of_fields_is_told_as_its_level_and_message(line: str, plain: str) -> None:
    assert without_fields(line) == plain


@pytest.mark.parametrize(
    "line",
    [
        'time=2024-11-09T18:44:42 level=ERROR source=a.go:2 msg="it broke" error="for no reason"',
        '{"level":"error","msg":"it broke","error":"for no reason"}',
        "E1109 18:44:42.976 12345 plugin.go:33] it broke: for no reason",
    ],
)
def test_an_error_of_fields_is_no_text_in_which_nothing_stands(line: str, read) -> None:
    (error,) = read(line).errors
    assert error.text.endswith("it broke: for no reason")
