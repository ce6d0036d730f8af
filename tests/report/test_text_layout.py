"""Documents as text: 80 columns, aligned, and in whatever encoding a terminal has."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from sample_diagnosis import ARCH, SHM, diagnosis

from envdoctor.findings import Severity
from envdoctor.report import Format, draw
from envdoctor.report.document import Bar, Bars, Block, Document, Row, Rows, Run, Section, Span, Table, Text
from envdoctor.report.rendering import render
from envdoctor.report.text import cells


def text(*blocks: Block) -> str:
    return draw(Document("t", "", blocks), Format.TEXT).partition("\n\n")[2]


def test_words_are_wrapped_at_80_columns_and_commands_are_not():
    long = replace(ARCH, cause="word " * 60, remedies=(replace(ARCH.remedies[0], commands=("pip " * 40,)),))
    lines = render(diagnosis(long)).splitlines()
    assert max(len(line) for line in lines if "$" not in line) <= 80
    assert any(line.strip() == "$ " + ("pip " * 40).strip() for line in lines)


def test_rows_align_their_values_and_name_what_was_read():
    drawn = text(Rows((Row("GPU", "H200", "NVML"), Row("Driver", "580"), Row("", "and more"))))
    assert drawn == "GPU     H200  (NVML)\nDriver  580\n        and more\n"


def test_wide_characters_count_twice():
    assert (cells("显卡"), cells("é"), cells("e\u0301")) == (4, 1, 1)
    drawn = text(Table(("名", "n"), (("显卡", "1"), ("ab", "2")), numbers=(1,)))
    assert drawn == "名    n\n显卡  1\nab    2\n"


def test_the_widest_column_gives_way_and_numbers_stay_whole():
    drawn = text(Table(("op", "why", "ms"), (("a", "word " * 30, "12.5"),), numbers=(2,)))
    assert max(map(len, drawn.splitlines())) <= 80
    assert drawn.splitlines()[1].endswith("12.5")


def test_bars_show_where_each_part_lies_and_where_the_card_ends():
    chart = Bars((Bar("weights", (Run(0, 50),), "5 GiB"), Bar("logits", (Run(50, 100),), "5 GiB")), 100, 75)
    first, second = text(chart).splitlines()
    assert first == f"weights  {'█' * 30}{'·' * 15}|{'·' * 14}  5 GiB"
    assert second == f"logits   {'·' * 30}{'█' * 15}|{'█' * 14}  5 GiB"


def test_a_section_inside_a_finding_stands_under_it():
    inner = Section((Span("note", "note"), "  INNER"), (Text("inside"),), "note")
    drawn = text(Section((Span("error", "error"), "  OUTER"), (Text("outside"), inner), "error"))
    assert drawn == "✗ error  OUTER\n  outside\n\n └─ · note  INNER\n      inside\n"


def test_at_most_five_findings_stand_open_and_the_rest_are_counted():
    many = tuple(replace(ARCH, id=f"E-{i}") for i in range(4))
    many += tuple(replace(SHM, id=f"W-{i}", certainty=ARCH.certainty) for i in range(4))
    folded = render(diagnosis(*many))
    assert folded.count("\n✗ error") == 4
    assert folded.count("\n! warning") == 1
    assert "\n3 more: 3 warnings  (--all shows them)\n" in folded
    unfolded = render(diagnosis(*many), unfold=True)
    assert unfolded.count("\n! warning") == 4
    assert "--all" not in unfolded


def test_causes_stand_open_before_consequences():
    root = replace(ARCH, id="ROOT")
    inner = tuple(replace(ARCH, id=f"C-{i}", consequence_of="ROOT") for i in range(6))
    other = replace(SHM, id="OTHER", severity=Severity.NOTE)
    drawn = render(diagnosis(root, *inner, other))
    assert "· note  OTHER" in drawn
    assert drawn.count("└─") == 3
    assert "3 more: 3 errors" in drawn


def test_findings_that_follow_from_each_other_are_all_shown():
    pair = (replace(ARCH, id="A", consequence_of="B"), replace(ARCH, id="B", consequence_of="A"))
    drawn = render(diagnosis(*pair))
    assert "error  A" in drawn
    assert "error  B" in drawn


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1", "gbk", "shift_jis"])
def test_no_encoding_breaks_the_text(encoding: str) -> None:
    paste = "GPU: Tesla K80 \u2713\ntorch: 2.9.0+cu128\nRuntimeError: \U0001f642 显卡 не найдена\n"
    done = subprocess.run(
        [sys.executable, "-m", "envdoctor", "diagnose", "--from", "-", "--no-color"],
        input=paste.encode(),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b""
    told = done.stdout.decode(encoding)
    assert told.startswith("x ")
    assert "TORCH-ARCH" in told
