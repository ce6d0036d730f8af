"""One report as text, JSON and JUnit."""

from __future__ import annotations

import io
import re

import junitparser
import pytest

from envdoctor.report import Format, Look
from envdoctor.smokes import SmokeReport, SmokeResult
from envdoctor.smokes.report import render

REPORT = SmokeReport(
    "NVIDIA H200",
    (
        SmokeResult("matmul.bf16", "passed", None, 0.0017, 0.01, 137.0, 0.4),
        SmokeResult("triu.bf16", "failed", "first call: RuntimeError: \x1b[2Jno", None, 0.0),
        SmokeResult("sdpa.flash", "crashed", "died of SIGSEGV", signal="SIGSEGV", stderr_tail="Fatal\nerror"),
        SmokeResult("bnb.nf4", "timeout", "not done after 60 s", tolerance=0.01),
        SmokeResult("matmul.bf16", "skipped", "no", tolerance=0.01, gpu=1),
    ),
)
TEXT = """\
✗ 1 passed, 1 failed, 1 crashed, 1 timeout, 1 skipped  on NVIDIA H200

op             verdict    error  tolerance  first ms  repeat ms
matmul.bf16    passed   1.7e-03    1.0e-02    137.00       0.40
triu.bf16      failed                    0
sdpa.flash     crashed
bnb.nf4        timeout             1.0e-02
matmul.bf16@1  skipped             1.0e-02

✗ failed  triu.bf16
  first call: RuntimeError: \\x1b[2Jno

✗ crashed  sdpa.flash
  died of SIGSEGV
    Fatal
    error

✗ timeout  bnb.nf4
  not done after 60 s

skipped  matmul.bf16@1: no
"""


def test_text_is_a_table_with_the_troubles_below():
    assert render(REPORT) == TEXT


def test_colour_says_the_same():
    coloured = render(REPORT, Format.TEXT, Look(colour=True))
    assert "  \x1b[1;32mpassed\x1b[0m   1.7e-03" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == TEXT


def test_nothing_run_is_no_green_tick():
    skipped = SmokeReport(None, (SmokeResult("a", "skipped", "no GPU"),))
    assert render(skipped).startswith("! 1 skipped  no device\n")


@pytest.mark.parametrize("format", [Format.MARKDOWN, Format.HTML])
def test_pages_name_the_trouble(format):
    page = render(REPORT, format)
    assert "died of SIGSEGV" in page
    assert "\x1b" not in page


def test_json_has_the_keys_that_are_promised():
    data = REPORT.to_json()
    assert (data["schema"], data["device"]) == ("envdoctor.smoke/1", "NVIDIA H200")
    promised = [
        "op",
        "outcome",
        "reason",
        "max_rel_error",
        "tolerance",
        "first_ms",
        "repeat_ms",
        "signal",
        "stderr_tail",
    ]
    assert set(promised) <= set(data["results"][0])


def test_junit_counts_failures_errors_and_skips():
    xml = junitparser.JUnitXml.fromfile(io.StringIO(render(REPORT, Format.JUNIT)))
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (5, 2, 1, 1)


def test_the_exit_code_is_the_worst_that_was_found():
    good = SmokeResult("a", "passed")
    assert REPORT.exit_code == 1
    assert SmokeReport("cpu", (good,)).exit_code == 0
    assert SmokeReport("cpu", (SmokeResult("a", "skipped"),), "torch not installed").exit_code == 3
