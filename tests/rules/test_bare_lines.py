"""An error line alone, without its paths and releases, makes no package certain that it does not name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts.names import NOT_PACKAGES
from envdoctor.findings import Certainty, Finding
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste

RECORD = None
MATRIX = load_matrix()
TOLD = [
    line.split("\t")[2].replace("\\n", "\n")
    for table in sorted(Path(__file__).parent.glob("*_say.tsv"))
    for line in table.read_text("utf-8").splitlines()
]
MARKS = {"torch": ("c10",)}
"""What a line holds of a package beside its name: symbols that no other library exports."""
PARTS = 12


def _bare(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return next((x for x in reversed(lines) if re.search(r"(?i)error|exception|failed|cannot", x)), lines[-1])


def _squeezed(words: str) -> str:
    return re.sub(r"[^a-z0-9]", "", words.lower())


def _is_named(package: str, line: str) -> bool:
    return any(_squeezed(mark) in _squeezed(line) for mark in (package, *MARKS.get(package, ())))


def _strangers(found: Finding, line: str) -> list[str]:
    packages = {name for remedy in found.remedies for name in remedy.pins} - NOT_PACKAGES
    return [] if any(_is_named(name, line) for name in packages) else sorted(packages)


@pytest.mark.parametrize("part", range(PARTS))
def test_words_alone_make_no_package_certain_that_they_do_not_name(part: int) -> None:
    for line in map(_bare, TOLD[part::PARTS]):
        found = diagnose_facts(parse_paste(line, "", MATRIX.lexicon), MATRIX, complete=False).findings
        sure = [one for one in found if one.certainty is Certainty.CERTAIN]
        assert not {one.id: names for one in sure if (names := _strangers(one, line))}, line


@pytest.mark.parametrize(
    ("told", "certainty"),
    [
        ("", Certainty.LIKELY),
        ("pymunk\n", Certainty.LIKELY),
        ('  File "/v/lib/python3.10/site-packages/pymunk/space.py", line 9, in f\n', Certainty.CERTAIN),
    ],
    ids=["nothing beside it", "prose", "its file"],
)
def test_what_tells_the_package_makes_it_certain(told: str, certainty: Certainty) -> None:
    text = f"{told}AttributeError: 'Space' object has no attribute 'add_collision_handler'"
    found = diagnose_facts(parse_paste(text, "", MATRIX.lexicon), MATRIX, complete=False).findings
    assert next(one for one in found if "PYMUNK" in one.id).certainty is certainty
