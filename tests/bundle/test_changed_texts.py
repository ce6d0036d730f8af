"""Texts that tell secrets and people, changed by a few strokes each: what is shown of every one, to the byte.

`changed_texts.tsv` is the record, a text a line: how often each kind was found in the text and its changed
copies, and a digest of all that is shown. A stroke moves what decides (a quote, a break at a terminal's
width, an escape, a blank more), so that both sides of most decisions are reached. What should be found is for
the other tests to say; `python tests/bundle/test_changed_texts.py [NUMBER]` writes the record anew, or shows
all of one text.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

import pytest
from secret_grid import Rule, bare, contexts, identities, labelled, panel, rules
from test_whole_redactions import LABELS

from envdoctor.bundling import Redactor
from envdoctor.bundling.known_values import KnownValues

RECORD = Path(__file__).with_name("changed_texts.tsv")
COPIES = 3
MARKS = "\"'`\\/=:;,.|│()[]<>{}@%&#$*+-_~!? \t\n\n  0a9ZxéП：“"
WIDTHS = (17, 40, 79, 80, 100, 120, 133)
KNOWN = KnownValues(
    secrets=("tJ8-kd93/nPz+Q2", "s3cr3t", "Zugang!42"),
    users=("mkowalski", "Anna"),
    homes=("/scratch/mkowalski", "/srv/h"),
    hosts=("zeus-07.example.org", "kepler"),
)
TOLD = (
    "kepler told mkowalski: 'tJ8-kd93/nPz+Q2' lies in /scratch/mkowalski/x, not in /srv/h",
    "zeus-07 s3cr3t Zugang!42 anna Zugang%2142 dEo4LWtkOTMvblB6K1Ey mkowalskis xkepler tJ8-kd93\\/nPz+Q2",
)
LOGGED = "line of a log\n"
Dice = random.Random
Stroke = Callable[[str, Dice], str]


def at(text: str, dice: Dice) -> int:
    return dice.randint(0, len(text))


def put(text: str, place: int, more: str, left_out: int = 0) -> str:
    return f"{text[:place]}{more}{text[place + left_out :]}"


def wrapped(text: str, dice: Dice) -> str:
    width, indent = dice.choice(WIDTHS), dice.choice(("", "", "  ", "│ ", "> ", "[rank0]: "))
    return f"\n{indent}".join(text[i : i + width] for i in range(0, len(text), width))


def boxed(text: str, dice: Dice) -> str:
    first, second, width = text.split("\n")[0], dice.choice(TOLD), dice.choice((12, 20, 30))
    rows = zip_longest(*([one[i : i + width] for i in range(0, 90, width)] for one in (first, second)))
    return "\n".join(f"| {one or '':{width}} | {other or '':{width}} |" for one, other in rows)


STROKES: tuple[Stroke, ...] = (
    *(lambda t, d: put(t, at(t, d), d.choice(MARKS)),) * 4,
    *(lambda t, d: put(t, at(t, d), d.choice(MARKS), 1),) * 3,
    *(lambda t, d: put(t, at(t, d), "", d.randint(1, 4)),) * 2,
    lambda t, d: put(t, at(t, d), "\\" * d.randint(1, 3)),
    lambda t, d: put(t, at(t, d), " " * d.choice((1, 2, 5, 60, 130))),
    lambda t, d: put(t, at(t, d), d.choice(("\n", "\r\n", " \\\n  ", '"\n    "', "\n\n\n"))),
    lambda t, d: put(t, at(t, d), t[at(t, d) :][: d.randint(1, 30)]),
    lambda t, d: put(t, at(t, d), "x" * d.choice((1, 8, 64, 200, 400))),
    lambda t, d: f"{LOGGED * d.randint(0, 7)}{t}\n{d.choice(TOLD)}",
    lambda t, d: json.dumps(json.dumps(t) if d.random() < 0.5 else t),
    lambda t, d: quote(quote(t) if d.random() < 0.5 else t),
    lambda t, d: t.replace('"', "&quot;").replace("=", "&#x3d;"),
    lambda t, d: t.upper() if d.random() < 0.5 else t.lower(),
    lambda t, d: panel(t.replace("\n", " "), d.choice((40, 80))),
    wrapped,
    wrapped,
    boxed,
)


ISSUED = (
    Rule("mixed", ("acme",), "[A-Za-z0-9]{24}", False),
    Rule("hexadecimal", ("acme",), "[a-f0-9]{32}", False),
    Rule("chosen", ("acme",), "[A-Za-z0-9]{4}[!#$%*+@][A-Z][a-z0-9]{6}[0-9]{2}", False),
)


BODY = "\n".join(crc32(bytes([n])).to_bytes(4, "big").hex() * 8 for n in range(3))
FRAMED = Path(__file__).with_name("framed.txt").read_text(encoding="utf-8").splitlines()


def texts() -> Iterator[str]:
    """Yield the texts that are changed: labels, secrets in their surroundings, lines that tell people."""
    yield from TOLD
    yield from (text.replace("\\n", "\n").replace("@body@", BODY) for text in FRAMED)
    yield from (text.replace("@value@", "Zx9!kQ2@bV7w") for text in LABELS[::2])
    for number, place in enumerate(contexts("labelled")):
        rule = ISSUED[number % len(ISSUED)]
        yield from (cell.text for cell in labelled(1, crc32(place.encode()), (rule,), (place,)))
    for rule in rules():
        if rule.marked and crc32(rule.kind.encode()) % 4 == 0:
            yield from (cell.text for cell in bare(1, crc32(rule.kind.encode()), (rule,)))
    yield from (cell.text for cell in identities(1, seed=3))


def copies(text: str, count: int = COPIES) -> Iterator[str]:
    """Yield the text, and what some strokes make of it."""
    dice = random.Random(text)
    yield text
    for number in range(count):
        copy = text
        for _ in range(dice.randint(1, 3)):
            copy = dice.choice(STROKES)(copy, dice)
        yield f"{copy}\n{TOLD[0]}" if number % 4 == 0 else copy


def shown(text: str, known: bool) -> tuple[str, Counter[str]]:
    """Return a text as it is shown, and how often each kind was found."""
    redactor = Redactor(KNOWN if known else None, keep=("kepler", "anna") if known else ())
    redactor.learn(text)
    return redactor.redact(text), Counter(redactor.summary())


def line(text: str) -> str:
    """Return a text's line."""
    all_shown = [shown(copy, number % 2 == 0) for number, copy in enumerate(copies(text))]
    counts = sum((found for _, found in all_shown), Counter[str]())
    told = " ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    words = " ".join(re.findall(r"\w+", text)[:6])
    return f"{words}\t{told}\t{crc32(repr(all_shown).encode()):08x}"


TOGETHER = 12
"""Texts that one test looks at."""
TEXTS = tuple(texts())


@pytest.mark.parametrize("first", range(0, len(TEXTS), TOGETHER))
def test_texts_are_shown_as_they_were(first: int) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    assert len(recorded) == len(TEXTS)
    assert [line(t) for t in TEXTS[first : first + TOGETHER]] == recorded[first : first + TOGETHER]


if __name__ == "__main__":
    if sys.argv[1:]:
        for number, copy in enumerate(copies(TEXTS[int(sys.argv[1])])):
            print(repr(copy), repr(shown(copy, number % 2 == 0)), sep="\n", end="\n\n")
    else:
        RECORD.write_text("".join(f"{line(text)}\n" for text in TEXTS), encoding="utf-8")
