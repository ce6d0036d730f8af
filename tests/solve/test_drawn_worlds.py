"""Worlds drawn at random, torch's builds among them: every step from a goal to its answer, to the byte.

`drawn_worlds.tsv` is the record, a world a line: what is asked, how it is answered, and a digest each of what
rules candidates out, the problem before and after pruning, as it is written for the engine, what can be read
off without a search, and the answer with its words. Whether an answer is the best one is for
`test_solve_oracle.py` to say; `python tests/solve/test_drawn_worlds.py [NUMBER]` writes the record anew, or
shows all of one world.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from solve_world import Release, goal, shipped, target, world

from envdoctor.commands import ANY
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.matrix import Matrix, tables
from envdoctor.report import Format, draw
from envdoctor.solve.answer import PinSet
from envdoctor.solve.direct import Unproven, completed, newest_asked, stands_alone
from envdoctor.solve.documents import Header, constraints_text, requirements_text, split_text
from envdoctor.solve.engine import Program
from envdoctor.solve.goal import Goal
from envdoctor.solve.manifests import environment_text, uv_text
from envdoctor.solve.mending import Demands, search
from envdoctor.solve.nodes import Node
from envdoctor.solve.pinning import pin, why_not
from envdoctor.solve.policy import Policy
from envdoctor.solve.problem import Problem
from envdoctor.solve.prune import propagate, prune
from envdoctor.solve.pylock import pylock_text
from envdoctor.solve.reasons import Pin
from envdoctor.solve.report import conflict_document, render
from envdoctor.solve.requests import Request
from envdoctor.solve.solver import policy_of, problem_of, solve
from envdoctor.solve.summary import summary_lines

RECORD = Path(__file__).with_name("drawn_worlds.tsv")
WORLDS = 90
KINDS = {
    row.KIND
    for row in (
        *(tables.ArchitectureRow, tables.CudaDriverRow, tables.DriverArchitectureRow, tables.DriverBranchRow),
        *(tables.GpuRow, tables.TorchCapabilityRow, tables.TorchVariantRow),
    )
}
NAMES = ("app", "lib", "torch", "numpy", "tool", "base")
VERSIONS = ("0.9", "1.0", "1.1", "1.2rc1", "2.0", "2.1.post1", "10.0")
LABELS = ("", "+cu118", "+cpu", "+cu999", "+cu121", "+odd")
TORCHES = ("1.13.1", "2.0.1", "2.4.1", "2.6.0", "2.7.1", "2.9.0")
BOUNDS = (
    "",
    ">=1.0",
    "<2",
    "==1.*",
    "!=1.1",
    "~=1.0",
    ">2",
    "<=2.0",
    ">=1.2rc1",
    "==2.0",
    "==1.2rc1",
    "<1.1,>0",
)
TORCH_BOUNDS = (
    "",
    ">=2",
    "<2.7",
    "==2.6.0",
    "!=2.9.0",
    ">=2.4,<2.9",
    "==2.*",
    "==2.6.0+cu126",
    "==2.7.1+cpu",
)
MARKERS = ("", "", "", ' ; python_version < "3.11"', ' ; extra == "fast"', ' ; sys_platform == "linux"')
TAGS = (
    *(["py3-none-any"],) * 12,
    *(["sdist"], ["py3-none-any", "sdist"], ["cp311-cp311-manylinux_2_17_x86_64"]),
    *(["cp311-cp311-manylinux_2_31_x86_64", "sdist"], ["cp312-cp312-manylinux2014_x86_64"]),
    *(["cp39-abi3-manylinux2014_x86_64"], ["cp311-cp311-win_amd64"]),
)
Dice = random.Random


def drawn_release(dice: Dice, others: tuple[str, ...]) -> Release:
    """Return a release that requires some of the others."""
    wanted = dice.sample(others, min(dice.choice((0, 1, 1, 2, 3)), len(others)))
    return {
        "requires": [
            f"{extra_of(dice, n)}{bound_of(dice, n)} {dice.choice(MARKERS)}".strip() for n in wanted
        ],
        "files": dice.choice(TAGS),
        "yanked": dice.random() < 0.04,
        "python": dice.choice((*(None,) * 8, ">=3.8", ">=3.8", ">=3.12", "<3.11")),
        "day": dice.randrange(0, 900, 30),
    }


def extra_of(dice: Dice, name: str) -> str:
    return f"{name}[fast]" if dice.random() < 0.2 else name


def bound_of(dice: Dice, name: str) -> str:
    return dice.choice(("", "", *(TORCH_BOUNDS if name == "torch" else BOUNDS)))


def drawn_row(dice: Dice, number: int) -> dict[str, Any]:
    one, other = dice.sample(NAMES, 2)
    when = {one: dice.choice((">=1.0", "<2", ">=2.0")), other: dice.choice((">=1.0", "<2", "*", "absent"))}
    if dice.random() < 0.3:
        when = {one: ">=1.0", "gpu.cc": dice.choice(("<8.0", ">=9.0"))}
    return {
        "id": f"ROW-{number}",
        "severity": dice.choice(("error", "error", "warning")),
        "when": when,
        "summary": f"{one} clashes",
        "cause": "They clash",
        "in_use": dice.random() < 0.3,
        "source": "https://example.com/thread",
        "checked_on": "2026-01-01",
        "basis": "issue thread",
    }


@cache
def torchs_own() -> Matrix:
    """Return the shipped matrix, of which torch's builds, capabilities and drivers are taken."""
    return shipped()[1]


def drawn_goal(number: int) -> Goal:
    """Return what is asked of world `number`, and on which machine."""
    dice = random.Random(number)
    packages = {
        name: {
            v: drawn_release(dice, NAMES[place + 1 :])
            for v in sorted(dice.sample(known, dice.randint(4, 6)), key=known.index)
        }
        for place, (name, known) in enumerate((n, TORCHES if n == "torch" else VERSIONS) for n in NAMES)
    }
    rows = [drawn_row(dice, n) for n in range(dice.randint(0, 2))]
    own = torchs_own()
    kept = {kind: own.tables[kind] for kind in KINDS if kind in own.tables}
    matrix = Matrix({**kept, "row": rows}, "test", "2026-01-01", own.folder)
    on = target(
        dice.choice([(3, 11), (3, 11), (3, 10), (3, 12, 4)]),
        dice.choice(("x86_64-manylinux_2_28", "x86_64-manylinux_2_28", "x86_64-manylinux_2_35")),
        dice.choice([(), (), ("sm_70",), ("sm_90",), ("sm_120", "sm_75")]),
        dice.choice([None, None, "535.54.03", "470.82.01"]),
        matrix,
    )
    asked = dice.sample(NAMES, dice.randint(1, 3))
    requests = [f"{extra_of(dice, n)}{bound_of(dice, n) if dice.random() < 0.4 else ''}" for n in asked]
    if "torch" in asked and dice.random() < 0.15:
        requests = [
            f"torch{dice.choice(TORCH_BOUNDS[-2:])}" if r.startswith("torch") else r for r in requests
        ]
    installed = {name: dice.choice(list(packages[name])) for name in dice.sample(NAMES, 3)}
    if "torch" in installed:
        installed["torch"] += LABELS[number % len(LABELS)]
    changing = dice.random() < 0.3
    drawn = goal(
        world(packages),
        requests,
        on=on,
        matrix=matrix,
        installed=installed if changing or dice.random() < 0.2 else None,
        least_change=changing,
        exclude_newer=dice.choice([None, None, None, None, "2026-09-01"]),
        allow_source=dice.random() < 0.4,
    )
    if dice.random() < 0.2:
        limits = (Request(dice.choice(NAMES), (), dice.choice(BOUNDS[1:]), "limits.txt:1"),)
        drawn = drawn.on(on, replace(drawn.context.options, constraints=limits))
    return drawn


def barred(node: Node) -> object:
    """Return what rules a package's candidates out, and what is known of those that are left."""
    masks = node.all, node.allowed, node.installable, node.installed, node.reserved
    return (
        node.name,
        masks,
        node.bans,
        node.days,
        node.package.majors,
        [node.shown(b) for b in range(len(node.places))],
    )


def problems(wanted: Goal) -> Iterator[object]:
    """Yield the problem as it is closed, pruned and written, for an answer and to explain."""
    policy = policy_of(wanted)
    for window in (None, 30):
        for used in (policy, None):
            problem = problem_of(wanted, policy, window)
            yield written(problem, used)
            prune(problem, used)
            yield problem.masks, sorted(problem.sure), written(problem, used)
    names = set(policy.asked)
    problem = problem_of(wanted, policy, 30, names)
    propagate(problem)
    yield problem.masks, policy, [policy.within(problem.node(n), 60) for n in sorted(problem.masks)]


def written(problem: Problem, used: Policy | None) -> object:
    """Return the rules of a problem for the engine."""
    told = Program(problem, used, (1, 2), {("app", "lib"): 1})
    return told.choices, told.rules, told.costs


def read_off(wanted: Goal) -> object:
    """Return the best answer where it can be read off, else what stands in the way."""
    policy = policy_of(wanted)
    newest = newest_asked(wanted, policy)
    if newest is None:
        return None
    alone = stands_alone(wanted, policy)
    try:
        return newest, alone, completed(wanted, policy, newest, alone)
    except Unproven as reached:
        return newest, alone, sorted(reached.names)


def mended(wanted: Goal, number: int) -> object:
    """Return what the fewest changes to what is installed cost, for demands drawn beside the requests."""
    dice, installed = random.Random(number), sorted(wanted.context.installed)
    if not installed:
        return None
    pins = {request.name: request.spec or ANY for request in wanted.requests}
    others = tuple({name: dice.choice((">=1.0", "<2"))} for name in dice.sample(NAMES, 2))
    demands = Demands(
        pins=pins,
        either=(others,) if dice.random() < 0.5 else (),
        met=frozenset({tuple(dice.sample(NAMES, 2))} if dice.random() < 0.5 else ()),  # type: ignore[arg-type]
        kept=frozenset(installed[:1] if dice.random() < 0.5 else ()),
    )
    ways = ((True, 1, True), (True, 1, False), (False, 2, True))
    found = [search(replace(wanted, least_change=least), demands, *way) for least, *way in ways]
    return demands.solvable, sorted(demands.names), [picks and picks.cost for picks in found]


def answered(wanted: Goal, answer: PinSet) -> Iterator[str]:
    """Yield the answer's words, in every form."""
    yield answer.status
    yield constraints_text(answer, Header("0", "0", "2026-01-01", "pin"))
    if answer.pins:
        yield requirements_text(answer, Header("0", "0", "2026-01-01", "pin"))
        yield from summary_lines(answer, "pins.txt")
    yield split_text(answer, Header("0", "0", "2026-01-01", "pin")) if answer.sets else ""
    yield from (f"{change}" for change in answer.changes)
    yield from (f"{cause.kind}: {cause.text} ({cause.source})" for cause in answer.causes)
    yield from (f"{one}" for one in answer.relaxations)
    yield draw(conflict_document(answer), Format.TEXT)
    yield render(why_not(wanted))


def formed(answer: PinSet) -> Iterator[str]:
    """Yield the pins as the files of other tools have them."""
    header = Header("0", "0", "2026-01-01", "pin")
    yield environment_text(answer, header)
    yield uv_text(answer, header)
    yield pylock_text(answer, header, files_of)


def files_of(one: Pin) -> list[IndexFile]:
    """Return files of a pin as an index would list them."""
    tags = ("py3-none-any.whl", "cp311-cp311-manylinux_2_17_x86_64.whl", "cp312-cp312-win_amd64.whl")
    names = [f"{one.name}-{one.label}-{tag}" for tag in tags[len(one.name) % 3 :]]
    names += [f"{one.name}-{one.label}.tar.gz"]
    place = "https://user:x@example.com/"
    return [IndexFile(n, one.label, place + n, f"{len(n):064x}", size=len(n) % 7) for n in names]


def told(number: int) -> Iterator[tuple[str, object]]:
    """Yield all that is worked out of one world, each step with its name."""
    wanted = drawn_goal(number)
    nodes = [wanted.context.node(name) for name in NAMES]
    yield "barred", [barred(node) for node in nodes if node]
    yield "problems", list(problems(wanted))
    yield "read off", read_off(wanted)
    picks = solve(wanted)
    yield "picks", picks and (sorted(picks.bits.items()), picks.cost, picks.window)
    yield "mended", mended(wanted, number)
    answer = pin(wanted)
    yield "answer", list(answered(wanted, answer))
    yield "forms", list(formed(answer)) if answer.pins else None


def line(number: int) -> str:
    """Return a world's line."""
    steps = dict(told(number))
    words = " ".join(str(request) for request in drawn_goal(number).requests)
    digests = "; ".join(f"{name}: {crc32(repr(step).encode()):08x}" for name, step in steps.items())
    return f"{number}\t{words}: {steps['answer'][0]}\t{digests}"  # type: ignore[index]


@pytest.mark.parametrize("number", range(WORLDS))
def test_a_world_is_answered_as_it_was(number: int) -> None:
    assert line(number) == RECORD.read_text(encoding="utf-8").splitlines()[number]


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*told(int(sys.argv[1])), sep="\n")
    else:
        RECORD.write_text("".join(f"{line(n)}\n" for n in range(WORLDS)), encoding="utf-8")
