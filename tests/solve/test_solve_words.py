"""What an answer says in words, of answers written down here: counts, titles, carried lines."""

from __future__ import annotations

from dataclasses import replace

from solve_world import target

from envdoctor.report import Format, draw
from envdoctor.solve.answer import Cause, PinSet, Relaxation
from envdoctor.solve.documents import Header, requirements_text
from envdoctor.solve.report import SHOWN, conflict_document
from envdoctor.solve.requests import Carried

CONFLICT = PinSet(
    "conflict",
    target(),
    ("app",),
    causes=(Cause("wish", "app>=2", "you"),),
    relaxations=(Relaxation("app>=2", {f"lib{n}": f"{n}.0" for n in range(SHOWN + 3)}),),
)


def words(answer: PinSet) -> str:
    return draw(conflict_document(answer), Format.TEXT)


def test_a_way_out_names_some_and_counts_the_rest() -> None:
    told = words(CONFLICT)
    assert f"lib{SHOWN - 1} {SHOWN - 1}.0 and 3 more" in " ".join(told.split())
    assert f"lib{SHOWN} " not in told


def test_a_conflict_is_an_error_and_the_unknown_a_warning() -> None:
    assert conflict_document(CONFLICT).tone == "error"
    unknown = conflict_document(replace(CONFLICT, status="unknown"))
    assert (unknown.title, unknown.tone) == ("not known", "warning")


def test_of_carried_lines_those_of_a_file_are_written_and_an_option_once() -> None:
    carried = tuple(
        Carried(text, source, "a path")
        for text, source in (("./own", "asked.txt:3"), ("--pre", "asked.txt:1"), ("./typed", ""))
    )
    answer = PinSet("solved", target(), (), carried=carried, options=("--pre",))
    lines = requirements_text(answer, Header("0", "0", "2026-01-01", "pin")).splitlines()
    assert lines.count("--pre") == 1
    assert "./own" in lines
    assert "./typed" not in lines
