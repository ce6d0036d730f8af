"""What each reader of a line, of two texts or of a paste answers by itself, of lines of every kind.

`readers_alone.tsv` is the record, a module a line; after a reader changed, `ENVDOCTOR_RECORD=1 pytest -n0
tests/pastes/test_readers_alone.py` writes it anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

from alone import Pools, differing
from test_whole_readings import TEXTS

from envdoctor.matrix import load_matrix
from envdoctor.pastes.sightings import Paste

RECORD = Path(__file__).with_name("readers_alone.tsv")
PARTS = 90
"""How many parts of texts stand for pastes."""


@cache
def pools() -> Pools:
    dice = Random(10)
    lexicon = load_matrix().lexicon
    texts = [path.read_text(encoding="utf-8") for path in TEXTS]
    lines = sorted({line for text in texts for line in text.splitlines() if 3 < len(line) < 300})
    some = dice.sample(lines, min(len(lines), 420))
    halves = [line[dice.randrange(len(line)) :] for line in some[:120]]
    words = sorted({word for line in some for word in line.split()})
    asked = [*some, *halves, *(line.strip() + ":" for line in some[:40]), *dice.sample(words, 160), "", " "]
    dice.shuffle(asked)
    blocks = [text.splitlines()[:40] for text in dice.choices(texts, k=PARTS)]
    pastes = [Paste(block, packages=lexicon.packages) for block in blocks]
    return {
        "str": asked, "str | None": [*asked[:40], None], "bool": (True, False), "int": range(12),
        "Sequence[str]": blocks, "list[str]": blocks, "Iterable[str]": blocks, "Paste": pastes,
        "CardNames": [lexicon.cards], "PackageNames": [lexicon.packages],
    }  # fmt: skip


def test_each_reader_answers_as_it_did() -> None:
    assert differing(RECORD, "envdoctor.pastes", pools()) == []
