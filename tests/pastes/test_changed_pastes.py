"""The whole texts of `whole/` and `samples/`, changed by a few strokes each: all that is read of every one.

`changed_pastes.tsv` is the record, a text a line: how many facts each changed copy tells, and a digest of
them; as for `drawn_lines.tsv`, what hangs on the rows does not count, but errors do. A stroke takes a
line out, moves, cuts, doubles or marks one, or writes another number: what a reader makes of the lines
around is decided there. After a reader changed, `python tests/pastes/test_changed_pastes.py` writes it
anew; with a number it shows a text's copies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from test_drawn_lines import NUMBERS
from test_lines import PASSED_OVER, facts_of
from test_whole_readings import TEXTS, leaves

from envdoctor.errors import InputError
from envdoctor.facts.codec import to_json

RECORD = Path(__file__).with_name("changed_pastes.tsv")
COPIES, FEW, LONG = 14, 3, 2000
OF_ROWS = ("settings", "symptoms", "warnings", "notes", *PASSED_OVER)
Lines = list[str]


def place(lines: Lines, dice: Random) -> int:
    return dice.randrange(len(lines))


def without(lines: Lines, dice: Random) -> Lines:
    first = place(lines, dice)
    return lines[:first] + lines[first + dice.choice((1, 1, 1, 2, 5)) :]


def part(lines: Lines, dice: Random) -> Lines:
    first, last = sorted((place(lines, dice), place(lines, dice)))
    return lines[first : last + 2]


def doubled(lines: Lines, dice: Random) -> Lines:
    to, moved = place(lines, dice), lines[place(lines, dice)]
    return [*lines[:to], moved, *lines[to:]]


def other_number(lines: Lines, dice: Random) -> Lines:
    text = "\n".join(lines)
    found = list(re.finditer(r"\d+", text))
    if not found:
        return lines
    one = dice.choice(found)
    return [*(text[: one.start()] + dice.choice(NUMBERS) + text[one.end() :]).split("\n")]


def cut(lines: Lines, dice: Random) -> Lines:
    at = place(lines, dice)
    end = dice.randrange(len(lines[at]) + 1)
    return [*lines[:at], lines[at][:end] if dice.random() < 0.6 else lines[at][end:], *lines[at + 1 :]]


def marked(lines: Lines, dice: Random) -> Lines:
    mark = dice.choice(("> ", "    ", "\t", "[rank0]: ", "│ ", "# ", "- ", "2026-11-20 10:11:12 INFO "))
    return [f"{mark}{line}" for line in lines]


def parted(lines: Lines, dice: Random) -> Lines:
    at = place(lines, dice)
    return [*lines[:at], dice.choice(("", "and then", "```", "---")), *lines[at:]]


STROKES: tuple[Callable[[Lines, Random], Lines], ...] = (
    *(without, without, part, doubled, other_number, other_number, cut, cut, marked, parted),
)


def copies(path: Path) -> Iterator[str]:
    """Yield what some strokes make of a text."""
    dice = Random(path.name)
    for _ in range(FEW if path.stat().st_size > LONG else COPIES):
        lines = path.read_text(encoding="utf-8").split("\n")
        for _ in range(dice.randint(1, 4)):
            lines = dice.choice(STROKES)(lines, dice) or [""]
        yield "\n".join(lines)


def facts_told(text: str) -> list[tuple[str, object]]:
    try:
        told = leaves(to_json(facts_of(text)))
    except InputError as error:
        return [("refused", str(error))]
    return [(fact, value) for fact, value in told if not fact.startswith(OF_ROWS) and ".symptoms" not in fact]


def line(path: Path) -> str:
    """Return a line of the record."""
    told = [facts_told(text) for text in copies(path)]
    return f"{path.name}\t{' '.join(str(len(facts)) for facts in told)}\t{crc32(repr(told).encode()):08x}"


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_every_copy_tells_what_it_told(number: int) -> None:
    assert line(TEXTS[number]) == RECORD.read_text(encoding="utf-8").splitlines()[number]


if __name__ == "__main__":
    if sys.argv[1:]:
        for text in copies(TEXTS[int(sys.argv[1])]):
            print(text, *facts_told(text), "=" * 40, sep="\n")
    else:
        RECORD.write_text("".join(f"{line(path)}\n" for path in TEXTS), encoding="utf-8")
