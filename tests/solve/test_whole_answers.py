"""Whole answers, of small worlds drawn at random and of the shipped facts: reasons, changes, causes.

`whole_answers.tsv` is the record, a world or a request a line. After the solver or its words changed,
`python tests/solve/test_whole_answers.py` writes it anew, and its diff says what is answered otherwise;
whether an answer is the best one is for `test_solve_oracle.py` to say.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from solve_world import EMPTY, Release, goal, shipped, target, world

from envdoctor.matrix import Matrix
from envdoctor.matrix.snapshot import Snapshot
from envdoctor.solve.documents import Header, constraints_text
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin, why_not
from envdoctor.solve.report import render
from envdoctor.solve.summary import summary_lines

RECORD = Path(__file__).parent / "whole_answers.tsv"
WORLDS = 60
NAMES = ("app", "lib", "core", "tool", "base")
VERSIONS = ("0.9", "1.0", "1.1", "2.0rc1", "2.0", "2.1.post1")
BOUNDS = ("", ">=1.0", "<2", "==1.*", "!=1.1", "~=1.0", ">2", "<=1.0", ">=2.0rc1")
MARKERS = ("", "", "", ' ; python_version < "3.11"', ' ; extra == "fast"', ' ; platform_machine == "aarch64"')
TAGS = (
    *(["py3-none-any"], ["py3-none-any"], ["py3-none-any"], ["sdist"], ["py3-none-any", "sdist"]),
    *(["cp311-cp311-manylinux_2_17_x86_64"], ["cp311-cp311-manylinux_2_31_x86_64"]),
    *(["cp312-cp312-manylinux2014_x86_64"], ["cp39-abi3-manylinux2014_aarch64"]),
)


def drawn_release(dice: random.Random, others: tuple[str, ...]) -> Release:
    """Return a release that requires some of the others."""
    wanted = dice.sample(others, dice.randint(0, min(2, len(others))))
    return {
        "requires": [f"{name}{dice.choice(BOUNDS)}{dice.choice(MARKERS)}" for name in wanted],
        "files": dice.choice(TAGS),
        "yanked": dice.random() < 0.05,
        "python": dice.choice((None, None, None, ">=3.8", ">=3.12", "<3.11")),
        "day": dice.randrange(0, 900, 30),
    }


def drawn_row(dice: random.Random, number: int) -> dict[str, Any]:
    one, other = dice.sample(NAMES, 2)
    when = {one: dice.choice((">=1.0", "<2", ">=2.0")), other: dice.choice((">=1.0", "<2", "*"))}
    if dice.random() < 0.3:
        when = {one: ">=1.0", "gpu.cc": dice.choice(("<8.0", ">=9.0"))}
    said = {
        "id": f"ROW-{number}",
        "severity": "error",
        "when": when,
        "summary": f"{one} clashes",
        "cause": "They clash",
    }
    origin = {"source": "https://example.com/thread", "checked_on": "2026-01-01", "basis": "issue thread"}
    return {**said, **origin}


def drawn_goal(number: int) -> Goal:
    """Return what is asked of world `number`, and on which machine."""
    dice = random.Random(number)
    packages = {
        name: {
            v: drawn_release(dice, NAMES[place + 1 :])
            for v in sorted(dice.sample(VERSIONS, 4), key=VERSIONS.index)
        }
        for place, name in enumerate(NAMES)
    }
    rows = [drawn_row(dice, n) for n in range(dice.randint(0, 2))]
    matrix = Matrix({"row": rows}, "test", "2026-01-01", EMPTY.folder)
    on = target(
        dice.choice([(3, 11), (3, 11), (3, 10), (3, 12, 4)]),
        gpus=dice.choice([(), ("sm_75",), ("sm_90", "sm_70")]),
        driver=dice.choice([None, "535.54.03"]),
    )
    asked = dice.sample(NAMES, dice.randint(1, 3))
    requests = [f"{name}{dice.choice(('', '', '[fast]'))}{dice.choice(BOUNDS)}" for name in asked]
    installed = {name: dice.choice(list(packages[name])) for name in dice.sample(NAMES, 3)}
    changing = dice.random() < 0.4
    return goal(
        world(packages),
        requests,
        on=on,
        matrix=matrix,
        installed=installed if changing else None,
        least_change=changing,
        exclude_newer=dice.choice([None, None, "2026-06-01"]),
        allow_source=dice.random() < 0.3,
    )


SHIPPED = """
torch / 3.11
torch torchvision / 3.11 / V100
torch torchvision / 3.11 / V100,H100
torch / 3.11 / A100 / 535.183.01
torch==2.6.0 / 3.11 / RTX 5090
torch / 3.9 / K80
torch / 3.11 / GTX 1080 / 580.65.06
torch bitsandbytes / 3.10 / T4,H100 / 550.54.15
torch<2.4 xformers / 3.10
torch<2.4 xformers / 3.10 / RTX 5090
torch torchaudio<2.6 / 3.11 / RTX 4090 / 570.10
torch==2.1.0 numpy>=2 / 3.11
triton==3.5.1 / 3.11
triton torch==2.5.1 / 3.11
transformers peft trl accelerate / 3.12 / A100
deepspeed torch==2.4.0 / 3.11 / A100 / 535.183.01
flash-attn torch / 3.11 / T4
nvidia-cublas-cu12 torch==2.3.0 / 3.11
tokenizers<0.19 transformers / 3.10
"""


def shipped_goal(line: str) -> Goal:
    """Return what is asked of the shipped facts: `REQUEST… / PYTHON / CARDS / DRIVER`."""
    snapshot, matrix = facts()
    requests, python, cards, driver = (*line.split(" / "), "", "")[:4]
    on = target(
        tuple(map(int, python.split("."))),
        "x86_64-manylinux_2_35",
        cards.split(",") if cards else (),
        driver or None,
        matrix,
    )
    return goal(snapshot, requests.split(), on=on, matrix=matrix)


@cache
def facts() -> tuple[Snapshot, Matrix]:
    return shipped()


def told(wanted: Goal, proof: bool) -> str:
    """Return the whole answer on one line."""
    answer = pin(wanted)
    parts = [
        " ".join(answer.asked),
        answer.status,
        constraints_text(answer, Header("0", "0", "2026-01-01", "pin")),
    ]
    parts += summary_lines(answer, "pins.txt") if answer.pins else ()
    parts += [f"{change.name} {change.old} to {change.new}" for change in answer.changes]
    parts += [f"{cause.kind}: {cause.text} ({cause.source})" for cause in answer.causes]
    parts += [f"without {one.drop}: {dict(one.gives)}" for one in answer.relaxations]
    parts += [render(why_not(wanted))] if proof else []
    return " | ".join(" ".join(part.split()) for part in parts)


def line(asked: int | str) -> str:
    """Return the record's line of a world, or of a request to the shipped facts."""
    if isinstance(asked, int):
        return f"{asked}\t{told(drawn_goal(asked), asked % 3 == 0)}"
    return f"{asked}\t{told(shipped_goal(asked), False)}"


ASKED = (*range(WORLDS), *SHIPPED.split("\n")[1:-1])


@pytest.mark.parametrize("place", range(len(ASKED)))
def test_a_request_is_answered_as_it_was(place: int) -> None:
    assert line(ASKED[place]) == RECORD.read_text(encoding="utf-8").splitlines()[place]


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line(asked)}\n" for asked in ASKED), encoding="utf-8")
