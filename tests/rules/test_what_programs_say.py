"""What installers, loaders, engines and interpreters say: each line has its finding, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

RECORD = None  # what is told here is asked for in the table
MATRIX = load_matrix()
HERE = Path(__file__).parent
TABLE = [
    line
    for name in ("programs", "engines", "loaders", "mended", "ranges", "bounds")
    for line in (HERE / f"{name}_say.tsv").read_text("utf-8").splitlines()
]
PARTS = 12  # so many tests, that none takes long


@pytest.mark.parametrize("part", range(PARTS))
def test_each_line_is_answered_with_what_to_do(part: int) -> None:
    for row in TABLE[part::PARTS]:
        identity, way, said = row.split("\t")
        text = said.replace("\\n", "\n")
        told = diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX, complete=False).findings
        ways = {one.id: [f"{r.text} {' '.join(r.commands)}" for r in one.remedies] for one in told[:2]}
        assert way in " ".join(ways.get(identity, [])), (row, ways)


def test_each_sentence_of_an_interpreter_is_read_by_its_row() -> None:
    for line in (HERE / "interpreter_says.tsv").read_text("utf-8").splitlines():
        identity, said = line.split("\t")
        told = diagnose_facts(parse_paste(said, "", MATRIX.lexicon), MATRIX, complete=False).findings
        assert any(identity in one.rows for one in told[:2]), (line, [one.id for one in told])


@pytest.mark.parametrize(
    ("below", "explained"),
    [("Python: 3.11.10 (main, Oct  3 2024)\nCUDA available: True", False), ("ninja: build stopped", True)],
    ids=["SGLang's check_env asks for a version", "a build wants it"],
)
def test_a_report_that_asks_nvcc_for_its_version_builds_nothing(below: str, explained: bool) -> None:
    text = f"```\n/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found\n{below}\nsglang: 0.3.6\n```\n"
    told = diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX, complete=False).findings
    assert any("NVCC" in one.id for one in told) is explained
