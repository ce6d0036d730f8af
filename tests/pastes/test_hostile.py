"""Hostile input neither crashes nor hangs: mutated reports, bombs, floods, junk."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.facts import from_json, to_json

SAMPLES = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "samples").iterdir())]
RECORD = None  # what is drawn has none
MUTANTS = int(os.environ.get("ENVDOCTOR_MUTANTS", "240"))
PARTS = 8
JUNK = [
    *(
        "\x1b[31m",
        "\x9b2J",
        "\u202e",
        "\r",
        "\r\n",
        "\x00",
        "> ",
        "| ",
        "```",
        "{",
        "}",
        "[",
        "]",
        ":",
        "：",
        "=",
        "==",
    ),
    *(
        ">=",
        "<",
        '"',
        "'",
        "`",
        "...",
        "…",
        "9" * 400,
        "NaN",
        "--",
        "(7.0)",
        "x" * 300,
        " " * 300,
        "\t",
        "<details>",
    ),
    *(
        "</td>",
        "&amp;",
        "2x ",
        "+cu",
        "1e9999",
        "CUDA ",
        "driver ",
        "GPU: ",
        "\ufffd",
        "\ud800",
        "٣",
        "²",
        "１２",
    ),
]


def mutate(text: str, chance: random.Random) -> str:
    """Return `text` after some cuts, repetitions, splices and shuffles."""
    for _ in range(chance.randint(1, 30)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 200))
        head, part, tail = text[:start], text[start:end], text[end:]
        other = chance.choice(SAMPLES)
        at = chance.randint(0, len(other))
        part = chance.choice(
            [
                chance.choice(JUNK) + part,
                "",
                part * chance.randint(1, 20),
                other[at : at + chance.randint(0, 2000)] + part,
                part.swapcase(),
                part.replace("\n", chance.choice(["", " ", "\n\n", "\r"])),
                "".join(chance.sample(part, len(part))),
                part.replace(" ", "").replace(".", ".."),
            ]
        )
        text = head + part + tail
    return text


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_reports(read, part):
    for seed in range(part, MUTANTS, PARTS):
        chance = random.Random(seed)
        text = mutate(chance.choice(SAMPLES), chance)
        facts = read(text)
        assert from_json(json.loads(json.dumps(to_json(facts)))) == facts, seed


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(
            st.text(max_size=60), st.sampled_from(JUNK), st.sampled_from(SAMPLES).map(lambda s: s[:300])
        )
    )
)
def test_any_text(read, pieces):
    read("\n".join(pieces))


BOMBS = {
    "spaced table": "Package Version\n" + ("torch" + " " * 4000 + "x\n") * 25,
    "deep json": "[" * 100_000,
    "deep objects": '{"a":' * 50_000,
    "yaml aliases": "a0: &a0 [x,x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i},*a{i}]\n" for i in range(50)),
    "huge integer": "batch_size: " + "9" * 100_000,
    "huge version": "torch: " + "1." * 50_000,
    "specifier flood": "torch" + ">=1.0," * 20_000,
    "colons": ":" * 100_000,
    "spaces": "torch" + " " * 100_000 + "x",
    "dots": "torch " + "." * 100_000,
    "pipes": "|" * 100_000,
    "quotes": "> " * 50_000,
    "escapes": "\x1b[" * 50_000,
    "open escapes": "\x1b]" + "0;" * 50_000,
    "tags": "<details" * 15_000,
    "flags": "--a " * 30_000,
    "assignments": "a=b " * 30_000,
    "keys": "".join(f"k{i}: 1\n" for i in range(10_000)),
    "pins": "".join(f"p{i}==1.0\n" for i in range(10_000)),
    "gpus": "GPU: " + "99x A100, " * 10_000,
    "gpu lines": "GPU 0: NVIDIA H200\n" * 10_000,
    "many cards": "".join(f"I have {i}x A100\n" for i in range(1, 60)) * 50,
    "rows of nvidia-smi": "|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |\n" * 5_000,
    "needles": "undefined symbol " * 6_000,
    "needle lines": "cuda out of memory tried to allocate\n" * 3_000,
    "wrapped needles": "cannot import name\n" * 5_000,
    "csv": "name, driver_version\n" + "a,b\n" * 20_000,
}  # fmt: skip


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_do_not_hang(read, name):
    facts = read(BOMBS[name])
    assert len(json.dumps(to_json(facts))) < 4_000_000


@pytest.mark.parametrize(
    ("bomb", "told"), [("[" * 100_000, "nested too deep"), ("9" * 10_000, "10000 digits"), ("NaN", "NaN")]
)
def test_our_own_json_that_nobody_wrote_is_refused(read, bomb, told):
    with pytest.raises(InputError, match=told):
        read('{"schema": "envdoctor.facts/1", "x": ' + bomb + "}")
