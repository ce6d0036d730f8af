"""The short texts of `lines.tsv`, rewritten at random: cut, joined, marked up, with other numbers and words.

`drawn_lines.tsv` is the record, a text a line: for each rewriting how many facts it tells (`.` none, `9` nine
or more), and a digest of them all; error lines, warnings and notes, which hang on the rows, do not count.
After a reader changed, `python tests/pastes/test_drawn_lines.py` writes it anew; with a number it shows what
is read of one line's. What should be read is for the other tests to say.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from test_lines import PASSED_OVER, RECORDED, TOGETHER, facts_of
from test_whole_readings import leaves

from envdoctor.errors import InputError
from envdoctor.facts.codec import to_json

RECORD = Path(__file__).with_name("drawn_lines.tsv")
TEXTS = tuple(t for t in (line.partition("\t")[0] for line in RECORDED) if "«" not in t and len(t) < 400)
REWRITINGS = 4
OF_ROWS = ("symptoms", "errors", "warnings", "notes", *PASSED_OVER)


def parts(text: str) -> list[str]:
    return text.split("¦")


MARKS = parts("- ¦* ¦• ¦1. ¦> ¦    ¦[pip3] ¦# ¦## ¦`¦[rank0]: ¦│ ¦✅ ¦- [x] ")
SIGNS = parts(":¦=¦ = ¦: ¦ | ¦\t¦ - ¦ is ¦==¦   ¦：¦ ... ")
NUMBERS = parts("0¦1¦3¦7¦8¦9¦10¦12¦15¦16¦24¦31¦32¦80¦127¦128¦550¦999¦1000¦4096¦8191¦99999")
BEFORE = parts(
    "GPU 0: ¦GPU: ¦cuda:0 ¦my ¦no ¦not on ¦needs ¦2x ¦8 x ¦dual ¦on a ¦than the ¦vs ¦NVIDIA ¦use ¦4块"
)
BEHIND = parts(
    " (x2)¦ x 4¦ only¦ or newer¦ is required¦ 24GB¦ with 80 GiB¦, too¦.¦ GPUs¦ fails¦ /dev/x¦+cu121¦.dev1¦%"
)
OTHERS = parts(
    "torch: 2.3.1¦transformers 4.44¦GPU: A100 80GB¦CUDA 12.1¦driver 535.104.05¦python 3.10¦bf16: true¦"
    "on 2x T4¦batch_size=4¦Ubuntu 22.04¦cuda:1¦at most 2.3"
)
FILLERS = parts("a¦ ¦and so on ¦, ¦x.y ")


def _replaced(text: str, pattern: str, by: str, dice: Random) -> str:
    """Replace one place where a pattern matches, drawn."""
    found = list(re.finditer(pattern, text))
    if not found:
        return f"{by} {text}"
    place = dice.choice(found)
    return text[: place.start()] + by + text[place.end() :]


def marked(text: str, dice: Random) -> str:
    return dice.choice(
        (f"{dice.choice(MARKS)}{text}", f"**{text}**", f"| {text} |", f"`{text}`", f'"{text}",')
    )


def signed(text: str, dice: Random) -> str:
    return _replaced(text, r"\s?[:=|]\s?", dice.choice(SIGNS), dice)


def counted(text: str, dice: Random) -> str:
    return _replaced(text, r"\d+", dice.choice(NUMBERS), dice)


def cut(text: str, dice: Random) -> str:
    place = dice.randrange(len(text) + 1)
    return dice.choice((text[:place], text[place:]))


def joined(text: str, dice: Random) -> str:
    return dice.choice((", ", " and ", "; ", " with ", "\n", "  ", " vs. ")).join((text, dice.choice(OTHERS)))


def beside(text: str, dice: Random) -> str:
    filler = dice.choice(FILLERS) * dice.randrange(20)
    return dice.choice((f"{dice.choice(BEFORE)}{filler}{text}", f"{text}{filler}{dice.choice(BEHIND)}"))


def reworded(text: str, dice: Random) -> str:
    words = text.split(" ")
    place = dice.randrange(len(words))
    words[place : place + 1] = dice.choice(
        ([], [words[place]] * 2, [words[place].upper()], [words[place].lower()])
    )
    return " ".join(words)


WAYS: tuple[Callable[[str, Random], str], ...] = (marked, signed, counted, cut, joined, beside, reworded)


def rewritten(number: int) -> Iterator[tuple[str, list[tuple[str, object]]]]:
    """Yield the rewritings of a text, and the facts that each tells."""
    dice = Random(TEXTS[number])
    for _ in range(REWRITINGS):
        text = dice.choice(WAYS)(TEXTS[number], dice)
        text = dice.choice(WAYS)(text, dice) if dice.random() < 0.3 else text
        yield text, facts_told(text)


def facts_told(text: str) -> list[tuple[str, object]]:
    try:
        told = leaves(to_json(facts_of(text)))
    except InputError as error:
        return [("refused", str(error))]
    return [(fact, value) for fact, value in told if not fact.startswith(OF_ROWS)]


def line(number: int) -> str:
    """Return a line of the record."""
    pairs = list(rewritten(number))
    counts = (sum(not fact.endswith("source") for fact, _ in told) for _, told in pairs)
    marks = "".join(str(min(count, 9)) if count else "." for count in counts)
    return f"{marks} {crc32(repr(pairs).encode('utf-8', 'backslashreplace')):08x} {TEXTS[number][:60]}"


def lines(first: int) -> list[str]:
    return [line(number) for number in range(first, min(first + TOGETHER, len(TEXTS)))]


@pytest.mark.parametrize("first", range(0, len(TEXTS), TOGETHER))
def test_every_rewriting_tells_what_it_told(first: int) -> None:
    assert lines(first) == RECORD.read_text(encoding="utf-8").splitlines()[first : first + TOGETHER]


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*(f"{text!r}\n  {told}" for text, told in rewritten(int(sys.argv[1]))), sep="\n")
    else:
        RECORD.write_text("".join(f"{line(n)}\n" for n in range(len(TEXTS))), encoding="utf-8")
