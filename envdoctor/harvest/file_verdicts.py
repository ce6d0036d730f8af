"""Judging sets of files for usual Linux machines when the facts are made, so that no answer need."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from envdoctor.matrix.markers import clauses_hold
from envdoctor.matrix.snapshot import SDIST, groups_of
from envdoctor.matrix.verdicts import BARS, NEVER, UNTOLD, Glibc, bar_of, letter
from envdoctor.target.platforms import linux_platform
from envdoctor.target.resolve import Target
from envdoctor.target.wheels import Wheels

ARCHITECTURES, MINORS = ("x86_64", "aarch64"), range(9, 15)
MICROS = 40
"""More than any minor of Python has had."""


def verdict_lines(tables: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the table of verdicts on a snapshot's sets of files."""
    machines = [(arch, minor) for arch in ARCHITECTURES for minor in MINORS]
    floors = [_floors(tables, *machine) for machine in machines]
    levels = sorted({floor for told in floors for floor in told if floor is not None})
    letters: dict[Glibc | None, str] = {level: letter(place) for place, level in enumerate(levels)}
    letters[None] = NEVER
    lines = [" ".join(f"{major}.{minor}" for major, minor in levels)]
    sources = [str(SDIST) in tags.split(",") for tags in tables["together"]]
    sets = [[(python, tags) for python, tags, _ in groups_of(text)] for text in tables["sets"]]
    for (arch, minor), least in zip(machines, floors, strict=True):
        runs = [_runs(json.loads(told)[1], minor) for told in tables["pythons"]]
        since, barred = "", ""
        for groups in sets:
            allowed = [python < 0 or runs[python] for python, _ in groups]
            there = [tags for (_, tags), allows in zip(groups, allowed, strict=True) if allows]
            found = [floor for tags in there if (floor := least[tags]) is not None]
            bars = ["python"] * (len(there) < len(groups))
            bars += ["source" if sources[tags] else "platform" for tags in there]
            since += UNTOLD if None in allowed else letters[min(found, default=None)]
            barred += str(BARS.index(bar_of(bars)))
        lines.append(f"{arch} 3.{minor} {since} {barred}")
    return lines


def _floors(tables: Mapping[str, Sequence[str]], arch: str, minor: int) -> list[Glibc | None]:
    """Return from which glibc on one of the tags that came together installs; None for never."""
    wheels = Wheels(Target((3, minor), linux_platform(arch, "2.17")))
    known = {str(number): wheels.floor(tag) for number, tag in enumerate(tables["tags"])}
    every = ([known.get(tag) for tag in tags.split(",")] for tags in tables["together"])
    return [min(filter(None, floors), default=None) for floors in every]


def _runs(clauses: Sequence[Sequence[str]], minor: int) -> bool | None:
    """Return whether a Requires-Python holds for a minor; None where its releases differ."""
    pythons: Iterable[tuple[int, ...]] = ((3, minor), *((3, minor, micro) for micro in range(MICROS)))
    answers = {clauses_hold(clauses, python) for python in pythons}
    return answers.pop() if len(answers) == 1 else None
