"""Error lines are recognised by rows of the matrix, in the subset that RE2 reads too."""

from __future__ import annotations

import random
import re as python_re

import pytest
from pattern_draws import draw

from envdoctor.matrix import tables
from envdoctor.matrix.load import load_matrix
from envdoctor.pastes.symptoms import MATCHES_PER_SYMPTOM, scan

ROWS = load_matrix().rows(tables.SymptomRow)
WORDS = {"SYM-NPU-ERROR", "SYM-FAULT-SAID", "SYM-FAULT-CLASS", "SYM-TOLD-FAILING", "SYM-TOLD-BREAKING"}
WORDS |= {
    "SYM-TOLD-LATEST",
    "SYM-TOLD-WORKING",
    "SYM-TOLD-GOOD-BAD",
    "SYM-SHARED-OBJECT",
    "SYM-TOLD-ARGUMENT",
}
"""Signatures of mere words, whose needles are given: not every spelling has one."""


def test_every_row_is_usable():
    re2 = pytest.importorskip("re2")
    for row in ROWS:
        re2.compile("(?i)" + row.pattern)
        pattern = python_re.compile(row.pattern)
        assert all(len(needle.encode()) >= 3 for needle in row.needles), row.id
        assert not row.pattern.startswith("^"), f"{row.id}: patterns are searched within a line"
        assert set(row.tells.values()) <= pattern.groupindex.keys(), row.id


@pytest.mark.parametrize(
    ("line", "id", "captured"),
    [
        (
            "RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'",
            "SYM-TRIU-BF16",
            {},
        ),
        (
            "ImportError: /x/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined "
            "symbol: _ZN3c104cuda9SetDeviceEi",
            "SYM-UNDEFINED-SYMBOL",
            {
                "lib": "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
                "symbol": "_ZN3c104cuda9SetDeviceEi",
            },
        ),
        ("undefined symbol: ncclCommRegister", "SYM-UNDEFINED-SYMBOL", {"symbol": "ncclCommRegister"}),
        (
            "Exception: Installed CUDA version 11.0 does not match the version torch was "
            "compiled with 10.1, unable",
            "SYM-CUDA-MISMATCH",
            {"installed": "11.0", "torch": "10.1"},
        ),
        (
            "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by "
            "flash_attn_2_cuda.so)",
            "SYM-GLIBC",
            {"needed": "2.32", "lib": "flash_attn_2_cuda.so"},
        ),
        (
            "TypeError: SFTTrainer.__init__() got an unexpected keyword argument 'max_seq_length'",
            "SYM-UNEXPECTED-KWARG",
            {"class": "SFTTrainer", "function": "__init__", "kwarg": "max_seq_length"},
        ),
        ("ModuleNotFoundError: No module named 'triton.ops'", "SYM-NO-MODULE", {"module": "triton.ops"}),
        (
            "ImportError: cannot import name\n'EncoderDecoderCache' from\n'transformers' (/x)",
            "SYM-IMPORT-NAME",
            {"name": "EncoderDecoderCache", "module": "transformers"},
        ),
    ],
)
def test_lines_and_what_they_capture(read, line, id, captured):
    symptom = next(s for s in read(line).symptoms if s.id == id)
    assert symptom.captured == captured
    assert symptom.source == "line 1"


def test_captures_tell_facts(read):
    facts = read(
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the "
        "current PyTorch installation.\n"
        "The current PyTorch install supports CUDA capabilities sm_50 sm_80 sm_90.\n"
        "The NVIDIA driver on your system is too old (found version 12080).\n"
    )
    gpu = facts.gpus.value[0]
    assert (gpu.name, str(gpu.compute_capability)) == ("NVIDIA GeForce RTX 5090", "12.0")
    assert facts.environment.builds["torch"]["arch_list"] == ["sm_50", "sm_80", "sm_90"]
    assert str(facts.driver.cuda.value) == "12.8"


def test_out_of_memory_tells_the_cards_memory(read):
    facts = read(
        "CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 23.64 GiB total capacity; 23.08 GiB already"
    )
    assert facts.gpus.value[0].memory_total_bytes == int(23.64 * 2**30)


def test_what_an_extension_was_built_for_is_not_what_is_installed(read):
    facts = read(
        "xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
        "    PyTorch 2.2.0+cu121 with CUDA 1201 (you have 2.2.0+cpu)\n"
        "    Python  3.11.7 (you have 3.11.0)\n"
    )
    assert facts.distribution("torch").version == "2.2.0+cpu"
    assert facts.environment.python.value == "3.11.0"
    assert facts.environment.builds["torch"]["variant"] == "cpu"


def test_a_traceback_shows_its_python(read):
    facts = read('  File "/opt/conda/lib/python3.10/site-packages/torch/_ops.py", line 1, in f')
    assert facts.environment.python.value == "3.10"


def symptom_row(pattern):
    return tables.SymptomRow(
        id="SYM-X",
        needle="boom",
        pattern=pattern,
        title="",
        source="https://example.com",
        checked_on="2026-11-20",
        basis="issue thread",
    )


def test_the_same_line_counts_once_and_never_too_often():
    pattern = symptom_row(r"boom (?P<n>\d+)")
    assert len(scan(["boom 1"] * 500, [pattern])) == 1
    assert len(scan([f"boom {n}" for n in range(500)], [pattern])) == MATCHES_PER_SYMPTOM


def test_case_folding_never_shifts_the_line():
    pattern = symptom_row("BOOM")
    sight = scan(["İİİİİİ", "straße", "BOOM"], [pattern])[0]
    assert (sight.line, sight.text) == (2, "BOOM")


def test_the_version_in_an_error_line_is_whole(read):
    line = "trl 0.8 requires transformers>=4.31, but you have transformers 4.3 which is incompatible."
    assert read(line).distribution("transformers").version == "4.3"


def test_a_pattern_is_tried_wherever_it_matches():
    """What a pattern matches holds a needle: else the row is deaf to some of its own spellings."""
    chance = random.Random(1)
    deaf = {row.id for row in ROWS for _ in range(10) if _is_deaf(row, draw(row.pattern, chance)[0])}
    assert deaf <= WORDS


def _is_deaf(row, text):
    heard = any(needle in text.lower() for needle in row.needles)
    return not heard and python_re.search(row.pattern, text) is not None


def test_code_that_ipython_shows_around_the_line_that_ran_printed_nothing():
    row = symptom_row("BoomError")
    caught = "    400 except BoomError as e:"
    shown = ["File ~/hub.py:398, in cached_file(path)", "--> 398     download(path)", "    399     )", caught]
    assert scan(shown, [row]) == []
    assert [sight.line for sight in scan([*shown, "", "BoomError: 401"], [row])] == [5]
    assert len(scan([caught], [row])) == 1


def test_the_line_of_an_error_is_shown_and_not_the_title_that_repeats_it(read):
    said = "expected scalar type Float but found Half"
    facts = read(f"# Crash: {said}\n\nIt runs.\n\nRuntimeError: {said}\n")
    assert {(symptom.source, symptom.text) for symptom in facts.symptoms} == {
        ("line 5", f"RuntimeError: {said}")
    }
