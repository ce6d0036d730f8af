"""Conflicts: is every named cause needed, does each proposed change work, what does it take to say so.

    python benchmarks/conflicts.py [--drawn 40] [--seed 14]

The written ones are `tests/scenarios/conflicts`; the drawn ones ask for a release and for one of something
that its metadata excludes. Each cause is left out in turn, of the causes alone and of all that is known;
each proposed change to a request is made in the command's own words and solved.
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from envdoctor.api import _goal
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import Package, load_snapshot
from envdoctor.solve.answer import PinSet
from envdoctor.solve.asking import Wish
from envdoctor.solve.explain import DEPTHS, Inquiry, conflicts
from envdoctor.solve.goal import Goal
from envdoctor.solve.pinning import pin
from envdoctor.solve.problem import bits_of
from envdoctor.solve.solver import solve
from envdoctor.target.resolve import Declared
from envdoctor.toml_text import parse_toml

SCENARIOS = Path(__file__).parents[1] / "tests" / "scenarios" / "conflicts"


@dataclass(frozen=True)
class Asked:
    """A request on a machine."""

    request: list[str]
    python: str = "3.11"
    platform: str = "x86_64-manylinux_2_35"
    gpus: list[str] = field(default_factory=list)
    driver: str | None = None
    exclude_newer: str | None = None
    allow_source: bool = False

    def goal(self) -> Goal:
        """Return what is to be solved."""
        wish = Wish(self.request, (), False, self.exclude_newer, self.allow_source, None, True)
        return _goal(wish, None, Declared(self.gpus, self.driver, self.python, self.platform))


@dataclass(frozen=True)
class Scored:
    """What became of one request."""

    status: str
    seconds: float
    spared: int = 0
    """Causes that the others do without."""
    elsewhere: int = 0
    """Causes without which something forbids it still that the answer does not tell."""
    ways: int = 0
    broken: tuple[str, ...] = ()


def written() -> Iterator[Asked]:
    """Yield the scenarios of the tests."""
    for path in sorted(SCENARIOS.glob("*.toml")):
        told = parse_toml(path.read_text(encoding="utf-8"))
        yield Asked(**{name: told[name] for name in Asked.__dataclass_fields__ if name in told})


def drawn(count: int, seed: int) -> Iterator[Asked]:
    """Yield requests for a release and for one of another that it excludes, each to be had alone."""
    snapshot = load_snapshot(load_matrix().folder)
    names = sorted(name for name in snapshot.names() if not name.startswith(("nvidia-", "cuda-")))
    dice = random.Random(seed)
    while count:
        package = snapshot.package(dice.choice(names))
        finals = _finals(package) if package and package.crawled else []
        if package is None or not finals:
            continue
        place = dice.choice(finals)
        row = package.row_of(place)
        wanted = [one for one in package.requirements(row) if one.marker < 0] if row >= 0 else []
        one = dice.choice(wanted) if wanted else None
        other = snapshot.package(one.name) if one else None
        if one is None or other is None or not other.crawled:
            continue
        if outside := [bit for bit in _finals(other) if not other.spec_mask(one.spec) >> bit & 1]:
            version = other.versions[dice.choice(outside)]
            both = [f"{package.name}=={package.versions[place]}", f"{other.name}=={version}"]
            if all(solve(Asked([word]).goal()) for word in both):
                count -= 1
                yield Asked(both)


def _finals(package: Package) -> list[int]:
    return list(bits_of(package.all & ~package.prereleases & ~package.yanked))


def score(asked: Asked) -> Scored:
    """Ask, and hold the answer against what it says."""
    goal = asked.goal()
    gc.collect()
    gc.disable()  # as the command does
    start = time.process_time()
    answer = pin(goal)
    seconds = time.process_time() - start
    gc.enable()
    if answer.status not in ("conflict", "split"):
        return Scored(answer.status, seconds)
    reasons, *others = conflicts(goal)
    near = next(found for depth in DEPTHS if (found := Inquiry(goal, depth)).clashes())
    named = [number for number, reason in near.reasons.items() if reason in reasons]
    spared = sum(near.engine.clashes([n for n in named if n != left]) for left in named)
    whole = Inquiry(goal, None)
    told = [number for number, reason in whole.reasons.items() if reason in reasons]
    untold = [left for left in told if all(whole.reasons[left] in one for one in others)]
    elsewhere = sum(whole.engine.clashes([n for n in whole.reasons if n != left]) for left in untold)
    broken = tuple(_broken(asked, answer))
    return Scored(answer.status, seconds, spared, elsewhere, len(answer.relaxations), broken)


def _broken(asked: Asked, answer: PinSet) -> Iterator[str]:
    """Yield the proposed changes to requests that give no answer when they are made."""
    for way in answer.relaxations:
        changed = asked
        for drop in way.drop.split(" and "):
            changed = _without(changed, drop)
        if changed != asked and pin(changed.goal()).status != "solved":
            yield way.drop


def _without(asked: Asked, drop: str) -> Asked:
    """Return the request without one thing; what is neither a request nor an option is left as it is."""
    if "--allow-source" in drop:
        return replace(asked, allow_source=True)
    if drop.startswith("Python "):
        return replace(asked, python=drop.rpartition(" ")[2])
    gpus = [gpu for gpu in asked.gpus if not drop.startswith(gpu)]
    spec, _, name = drop.partition(" of ")
    left = [word for word in asked.request if re.split("[<>=!~]", word)[0] != drop]
    return replace(asked, request=[name if word == f"{name}{spec}" else word for word in left], gpus=gpus)


def main() -> None:
    """Print each that falls short, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drawn", type=int, default=40)
    parser.add_argument("--seed", type=int, default=14)
    args = parser.parse_args()
    scores = []
    for asked in (*written(), *drawn(args.drawn, args.seed)):
        one = score(asked)
        scores.append(one)
        if one.spared or one.elsewhere or one.broken or not one.ways or one.seconds > 1:
            print(f"{one} {' '.join(asked.request)} {asked.python} {asked.gpus} {asked.driver}", flush=True)
    found = [one for one in scores if one.status in ("conflict", "split")]
    times = sorted(one.seconds for one in found)
    unspared, told = sum(not one.spared for one in found), sum(not one.elsewhere for one in found)
    ways, working = sum(one.ways > 0 for one in found), sum(not one.broken for one in found)
    print(f"{len(found)} conflicts of {len(scores)} requests; none of the causes can be spared in {unspared}")
    print(f"without any one there is an answer, or what stands still is told, in {told}")
    print(f"a way out in {ways}, all ways work in {working}")
    print(f"CPU median {times[len(times) // 2]:.2f} s, 95th percentile {times[int(0.95 * len(times))]:.2f} s")
    sys.exit(any(one.spared or one.broken for one in found))


if __name__ == "__main__":
    main()
