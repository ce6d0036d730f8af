"""Requirements of a release whose wheels differ by Python: one list, with markers that say for which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from packaging.markers import Marker
from packaging.requirements import Requirement

from envdoctor.harvest.index_pages import IndexFile

FIRST = 9
"""The oldest Python 3 whose wheels are told apart."""
_TAG = re.compile(r"-cp3(\d+)-cp3\d+-([^-]+)\.whl")


def other_pythons(files: Sequence[IndexFile], chosen: IndexFile) -> dict[int, IndexFile]:
    """Return the wheels like the chosen one for other minor versions of CPython 3, by minor, oldest first."""
    mine = _TAG.search(chosen.filename)
    if mine is None:
        return {}
    kind = _kind(mine[2])
    found = {
        int(match[1]): file
        for file in files
        if (match := _TAG.search(file.filename)) and _kind(match[2]) == kind and int(match[1]) >= FIRST
    }
    return {minor: found[minor] for minor in sorted(found) if minor != int(mine[1])}


def minor_of(wheel: IndexFile) -> int:
    """Return the minor version of CPython 3 that a wheel is for."""
    match = _TAG.search(wheel.filename)
    return int(match[1]) if match else 0


def _kind(platform: str) -> str:
    """A platform without its version: manylinux1 and manylinux_2_28 of one machine are alike."""
    return re.sub(r"^(many|musl)linux\w*?_(?=x86_64|aarch64)", r"\1", platform.split(".")[0])


def merged(by_minor: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    """Return requirement lines that hold for each Python what its own list says."""
    minors = sorted(by_minor)
    lines = dict.fromkeys(line for minor in minors for line in by_minor[minor])
    return tuple(_limited(line, [line in by_minor[minor] for minor in minors], minors) for line in lines)


def _limited(line: str, holds: Sequence[bool], minors: Sequence[int]) -> str:
    if all(holds):
        return line
    runs: list[list[int]] = []
    for place, held in enumerate(holds):
        if held and place and holds[place - 1]:
            runs[-1][1] = place
        elif held:
            runs.append([place, place])
    condition = " or ".join(f"({_bounds(first, last, minors)})" for first, last in runs)
    requirement = Requirement(line)
    own = f"({requirement.marker}) and " if requirement.marker else ""
    requirement.marker = Marker(f"{own}({condition})")
    return str(requirement)


def _bounds(first: int, last: int, minors: Sequence[int]) -> str:
    """The Pythons from one place of the list to another; its ends are open."""
    parts = [f'python_version >= "3.{minors[first]}"'] if first else []
    parts += [f'python_version < "3.{minors[last + 1]}"'] if last + 1 < len(minors) else []
    return " and ".join(parts)
