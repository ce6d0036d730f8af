"""Measures `upgrade` on projects that moved to a release: which of the lines that they changed are found.

    python benchmarks/migrations.py FOLDER... [--show]

Each folder holds a project as it stood before: `tree/`; `moves.txt`, a line `library old new` for each
library that moves; and `truth.tsv`, a line `kind, file, line, text` for each line that the project changed
for that reason: B breaks by itself, C follows from one that does (`cell:line` in a notebook, or its line in
the notebook's own text). Printed are the lines found, all lines reported (to be judged by the releases' own
sources), the patched files that do not parse, and those that a second patch would change again. Where a
statement of several lines is reported, a changed line of it counts as found, one for each report.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from envdoctor.facts.names import normalise
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.snapshot import Package, load_snapshot
from envdoctor.python_source import parse_python
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.judging import Judge
from envdoctor.upgrading.patching import patched
from envdoctor.upgrading.reading import read_cells
from envdoctor.upgrading.upgrading import Found, judge_paths


@dataclass(frozen=True)
class Line:
    """A line that a project changed."""

    kind: str
    file: str
    place: str
    text: str


@dataclass(frozen=True)
class Project:
    """A project before its move."""

    folder: Path
    moves: Mapping[str, Move]
    truth: Sequence[Line]

    @property
    def tree(self) -> Path:
        """Where its files lie."""
        return self.folder / "tree"

    def key(self, found: Found) -> tuple[str, str]:
        """Return file and place of a report as the truth writes them."""
        place = f"{found.cell}:{found.told.use.place.line}" if found.cell else str(found.told.use.place.line)
        return str(Path(found.file).relative_to(self.tree)), place


def brought(matrix: Matrix, moves: Mapping[str, Move]) -> Iterator[tuple[str, Move]]:
    """Yield what has to move along: what the old releases and the new ones require has nothing in common.

    The command takes these from its answer: here the newest before and the oldest after are taken.
    """
    snapshot = load_snapshot(matrix.folder)
    for library, move in moves.items():
        package = snapshot.package(library)
        told = [_required(package, release) for release in (move.old, move.new)] if package else []
        for name in sorted(told[0].keys() & told[1].keys()) if told else ():
            other = snapshot.package(name)
            before, after = (other.spec_mask(one[name]) & other.finals for one in told) if other else (0, 0)
            if other and before and after and not before & after and name not in moves:
                new, old = (after & -after).bit_length() - 1, before.bit_length() - 1
                yield name, Move(Version(other.versions[new]), Version(other.versions[old]))


def _required(package: Package, release: Version | None) -> dict[str, int]:
    place = package.position.get(str(release)) if release else None
    row = package.row_of(place) if place is not None else -1
    return {one.name: one.spec for one in package.requirements(row) if one.marker < 0} if row >= 0 else {}


def read_project(folder: Path, matrix: Matrix) -> Project:
    """Return the project in a folder."""
    moves = {}
    for row in (folder / "moves.txt").read_text().splitlines():
        library, old, new = row.split()
        moves[normalise(library)] = Move(Version(new), Version(old))
    moves |= dict(brought(matrix, moves))
    lines = (Line(*row.split("\t", 3)) for row in (folder / "truth.tsv").read_text().splitlines())
    return Project(folder, moves, [_in_cell(folder / "tree", line) for line in lines])


def _in_cell(tree: Path, line: Line) -> Line:
    """Return a line that is told by its place in a notebook's own text by cell and line."""
    path = tree / line.file
    if path.suffix != ".ipynb" or not line.place.isdecimal() or not path.is_file():
        return line
    rows = path.read_text("utf-8", "replace").splitlines()
    asked, cells = rows[int(line.place) - 1], json.loads("\n".join(rows))["cells"]
    before = sum(row == asked for row in rows[: int(line.place)])
    written = json.loads(asked.strip().removesuffix(","))
    same = (
        f"{number}:{place}"
        for number, cell in enumerate(cells, 1)
        for place, text in enumerate(cell["source"], 1)
        if text == written
    )
    found = list(same)
    return replace(line, place=found[before - 1]) if before <= len(found) else line


def mended(project: Project, matrix: Matrix) -> tuple[int, int, int]:
    """Return how many files are patched, do not parse then, and would be patched again."""
    judge, files, broken, again = Judge(matrix, project.moves), 0, 0, 0
    for path in sorted(one for one in project.tree.rglob("*.py") if one.is_file()):
        text = path.read_text("utf-8", "replace")
        read = next(read_cells([text], held=judge.held))
        breaks = list(judge.breaks(read.uses)) if read else []
        new = patched(text, breaks, read.written) if read else text
        if new == text:
            continue
        files += 1
        try:
            parse_python(new)
        except SyntaxError:
            broken += 1
        after = next(read_cells([new], held=judge.held))
        again += after is None or patched(new, list(judge.breaks(after.uses)), after.written) != new
    return files, broken, again


def measure(project: Project, matrix: Matrix, show: bool) -> tuple[int, int, int, int]:
    """Print one project's figures; return B found, B, C found, C."""
    started = time.perf_counter()
    judged = judge_paths(matrix, project.moves, [str(project.tree)])
    spent = time.perf_counter() - started
    reports = {project.key(found): found for found in judged.breaks}
    first = {
        (key[0], str(one.told.use.statement.line)) for key, one in reports.items() if one.told.use.statement
    }
    told = reports.keys() | first | set(_beside(project, reports))
    found = {kind: sum((t.file, t.place) in told for t in project.truth if t.kind == kind) for kind in "BC"}
    whole = {kind: sum(t.kind == kind for t in project.truth) for kind in "BC"}
    others = {
        key: one for key, one in reports.items() if key not in {(t.file, t.place) for t in project.truth}
    }
    files, broken, again = mended(project, matrix)
    figures = [f"{found[kind]} of {whole[kind]}" for kind in "BC"]
    print(
        f"{project.folder.name}: {figures[0]} breaking, {figures[1]} following;"
        f" {len(reports)} reported, {len(others)} elsewhere;"
        f" {files} files patched, {broken} broken, {again} patched again;"
        f" {judged.files} files in {spent:.1f} s, {judged.unfollowed} not followed"
    )
    if show:
        _show(project, told, others)
    return found["B"], whole["B"], found["C"], whole["C"]


def _beside(project: Project, reports: Collection[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the changed lines of statements that are reported on another of their lines."""
    truth = {(line.file, line.place) for line in project.truth}
    for file in {file for file, place in reports if file.endswith(".py")}:
        spans = _statements((project.tree / file).read_text("utf-8", "replace"))
        for name, place in reports:
            if name == file and (name, place) not in truth and place.isdecimal():
                around = min((s for s in spans if int(place) in s), key=len, default=range(0))
                yield from [(file, str(n)) for n in around if (file, str(n)) in truth - set(reports)][:1]


def _statements(text: str) -> list[range]:
    """Return the lines of each statement that holds no other."""
    try:
        tree = parse_python(text)
    except SyntaxError:
        return []
    simple = (one for one in ast.walk(tree) if isinstance(one, ast.stmt) and not hasattr(one, "body"))
    return [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in simple]


def _show(
    project: Project, reports: Collection[tuple[str, str]], others: Mapping[tuple[str, str], Found]
) -> None:
    for line in project.truth:
        if (line.file, line.place) not in reports:
            print(f"    missed {line.kind} {line.file}:{line.place} {line.text[:100]}")
    for (file, place), one in others.items():
        print(f"    also {file}:{place} {one.told.name} since {one.told.since} -> {one.told.replacement}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="name what is missed and what is found elsewhere")
    options = parser.parse_args()
    matrix = load_matrix()
    gc.disable()  # as the command does
    totals = [measure(read_project(folder, matrix), matrix, options.show) for folder in options.folders]
    found, breaking, following, others = map(sum, zip(*totals, strict=True))
    print(
        f"all: {found} of {breaking} breaking lines, {found + following} of {breaking + others} changed lines"
    )


if __name__ == "__main__":
    main()
