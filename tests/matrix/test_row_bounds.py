"""Each bound of each curated row has a version on either side that the row is held to: moved, it is noticed.

`row_bounds.tsv` is the record: row, field, versions that are inside, versions that are outside. After a row
was added or a bound changed, `python tests/matrix/test_row_bounds.py` writes it anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envdoctor.fact_files import find_folder, read_files
from envdoctor.matrix import forms
from envdoctor.matrix.kinds import KINDS
from envdoctor.matrix.sources import leaves, parse_sources

RECORD = Path(__file__).with_name("row_bounds.tsv")
BOUNDS = {forms.BOUND.name, forms.PRESENCE.name, forms.CUDA.name, forms.NUMBER.name}
_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*([0-9][^,\s]*)")


def bounds() -> Iterator[tuple[str, str, str]]:
    """Yield row, field and text of every bound of versions."""
    for row in parse_sources(read_files(find_folder())):
        for path, form, text in leaves(KINDS[row.kind], row.data):
            if form.name in BOUNDS and _CLAUSE.search(text):
                yield row.data["id"], ".".join(map(str, path)), text


def moved(version: str, by: int) -> str | None:
    """Return the version one minor further, or one major where it has no minor; None below zero."""
    series = ".*" if version.endswith(".*") else ""
    release = list(Version(version.removesuffix(".*")).release)
    place = min(1, len(release) - 1)
    release[place] += by
    return None if release[place] < 0 else ".".join(map(str, release)) + series


def mutants(text: str) -> Iterator[str]:
    """Yield the bound with each of its versions moved by one minor up and down."""
    for clause in _CLAUSE.finditer(text):
        for by in (1, -1):
            if other := moved(clause[2], by):
                yield text[: clause.start(2)] + other + text[clause.end(2) :]


def near(text: str) -> list[str]:
    """Return versions at, just below and just above each version of a bound, one minor around it."""
    found: set[str] = set()
    for clause in _CLAUSE.finditer(text):
        known = Version(clause[2].removesuffix(".*"))
        release = ".".join(map(str, known.release))
        found |= {str(known), f"{release}.0.0.1"}
        for step in (-1, 1):
            if other := moved(release, step):
                found |= {other, f"{other}.0.0.1"}
    return sorted(found, key=lambda version: (Version(version), version))


def admits(text: str, version: str) -> bool:
    """True when the bound's clauses admit a version, pre-releases included."""
    clauses = ",".join(f"{operator}{bound}" for operator, bound in _CLAUSE.findall(text))
    return SpecifierSet(clauses, prereleases=True).contains(version)


def judged(text: str) -> tuple[str, str]:
    """Return the versions near a bound that are inside, and those that are outside."""
    points = near(text)
    inside = [point for point in points if admits(text, point)]
    return " ".join(inside), " ".join(point for point in points if point not in inside)


def lines() -> Iterator[str]:
    """Yield the record."""
    for row, field, text in bounds():
        yield "\t".join((row, field, *judged(text)))


def record() -> dict[tuple[str, str], tuple[list[str], list[str]]]:
    read = (line.split("\t") for line in RECORD.read_text(encoding="utf-8").splitlines())
    return {(row, field): (inside.split(), outside.split()) for row, field, inside, outside in read}


def differs(text: str, inside: list[str], outside: list[str]) -> bool:
    return not all(admits(text, one) for one in inside) or any(admits(text, one) for one in outside)


def test_each_bound_admits_what_it_is_held_to() -> None:
    held = record()
    found = {(row, field): text for row, field, text in bounds()}
    assert sorted(found) == sorted(held), "run `python tests/matrix/test_row_bounds.py`"
    assert [place for place, text in found.items() if differs(text, *held[place])] == []


def test_a_bound_moved_by_one_minor_is_noticed() -> None:
    held = record()
    passed = [
        (row, field, mutant)
        for row, field, text in bounds()
        for mutant in mutants(text)
        if not differs(mutant, *held[row, field])
    ]
    assert passed == []


@pytest.mark.parametrize(
    ("bound", "mutant"),
    [(">=2.4", ">=2.5"), ("<3", "<4"), ("==2.1.*", "==2.2.*"), (">=4.39,<4.40", ">=4.39,<4.41")],
)
def test_a_mutant_is_told_apart_by_the_versions_near(bound: str, mutant: str) -> None:
    inside, outside = judged(bound)
    assert mutant in list(mutants(bound))
    assert differs(mutant, inside.split(), outside.split())


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
    sys.exit(0)
