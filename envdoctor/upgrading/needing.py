"""What pins need, beyond their metadata, for what code imports to import: read in the releases' files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from envdoctor.matrix import Matrix
from envdoctor.matrix.interface_ranges import specifier_of
from envdoctor.matrix.interface_records import load_record
from envdoctor.matrix.snapshot import Package
from envdoctor.rules.interface_lookup import distribution_of
from envdoctor.rules.standard_modules import is_in_python, python_with
from envdoctor.solve.answer import PinSet
from envdoctor.solve.goal import Goal
from envdoctor.solve.requests import Request, marker_holds
from envdoctor.specifiers import SpecifierSet
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.importing import PYTHON, Import, Lack, Walk
from envdoctor.upgrading.paths import is_open
from envdoctor.upgrading.sources import find_files, python_of, read_text
from envdoctor.values import NamedTuple

if TYPE_CHECKING:
    from envdoctor.harvest.module_reader import ModuleReader


def _nothing() -> None:
    return None


class Wanted(NamedTuple):
    """A request, or a bound for what is pinned, with the reason, and what is said where it cannot be had."""

    request: Request
    told: str
    bounds: bool = False
    instead: Callable[[], Wanted | None] = _nothing
    """Looks for what serves as well where this has no place."""

    @property
    def is_hopeless(self) -> bool:
        """True where nothing is known that would serve: that is only told."""
        return self.bounds and not self.request.spec

    @property
    def without(self) -> str:
        """What is said where it cannot be had."""
        if self.bounds:
            return "no older release fits what was asked for"
        return "it has no place beside what was asked for"


class CodeImports(NamedTuple):
    """What code imports, and the names of its own modules and folders."""

    imports: tuple[Import, ...]
    own: frozenset[str]


def imports_of_code(paths: Sequence[str]) -> CodeImports:
    """Return what the files under paths import at their top; raises InputError for a path that is none."""
    files = find_files(paths)
    own = frozenset(part for file in files for part in (*file.parent.parts, file.stem))
    return CodeImports(tuple(_imports(files)), own)


def wanted_by_modules(
    goal: Goal, answer: PinSet, matrix: Matrix, reader: ModuleReader, code: CodeImports
) -> list[Wanted]:
    """Return what the pins need so that what the code imports (without code what was asked for) imports.

    What is asked for and on record is judged by its record.
    """
    pinned = {one.name: one.version for one in answer.pins}
    minor = goal.context.target.python_minor
    standard = cache(lambda root: is_in_python(matrix, root, minor))
    environment = goal.context.environment
    walk = Walk(
        matrix,
        reader,
        pinned,
        standard,
        lambda name: python_with(matrix, name, minor),
        lambda marker: marker_holds(marker, environment),
        lambda owner: _required(goal, pinned, owner),
        code.own,
    )
    imports = list(code.imports)
    for name in () if code.own else goal.unrecorded():
        imports += walk.roots_of(name) if name in pinned else ()
    remedy = _Remedies(goal, matrix, walk)
    lacks = walk.lacks(imports)
    reader.wait_anew()
    found = [remedy.of(lack) for lack in lacks]
    return list({one.request: one for one in found if one is not None}.values())


def _required(goal: Goal, pinned: Mapping[str, str], owner: str) -> Iterator[str]:
    """Yield what a pinned release requires with any extra; what is asked for, where nobody is named."""
    if not owner:
        yield from (one.name for one in goal.requests)
        return
    package = (goal.coverage.snapshot if goal.coverage else goal.context.snapshot).package(owner)
    place = package.position.get(pinned[owner]) if package else None
    if package is None or place is None or (row := package.row_of(place)) < 0:
        return
    for extra in ("", *package.extras(row)):
        yield from (one.name for one in package.requirements(row, extra))


def _imports(files: Sequence[Path]) -> Iterator[Import]:
    from envdoctor.harvest.module_imports import top_imports

    for path in files:
        text = read_text(path) if path.suffix in (".py", ".ipynb") else None
        for source in python_of(path, text) if text else ():
            for taken in top_imports(source.text):
                yield Import(taken, "", f"{source.file}, line {taken.line}")


class _Remedies:
    """What serves where an import fails."""

    def __init__(self, goal: Goal, matrix: Matrix, walk: Walk) -> None:
        self.goal, self.matrix, self.walk = goal, matrix, walk
        self.snapshot = goal.coverage.snapshot if goal.coverage else goal.context.snapshot

    def of(self, lack: Lack) -> Wanted | None:
        """Return the request or bound under which the import does not fail; None where none is known.

        Where what is imported cannot be had, an older importer may do without it.
        """
        if lack.library == PYTHON:
            return self._of_another_python(lack)
        if lack.needs:
            return self._runtime(lack)
        wanted = self._other_release(lack) if lack.library else self._brought(lack)
        return wanted and wanted._replace(instead=lambda: self._older_importer(lack))

    def _runtime(self, lack: Lack) -> Wanted:
        """Return the bound under which a generated module's runtime takes it."""
        who = f"{lack.met.owner} {self.walk.pinned[lack.met.owner]}"
        here = f"{lack.library} {self.walk.pinned[lack.library]}"
        told = (
            f"{lack.library}{lack.needs}: {who} has a generated module ({lack.met.place}) that {here} refuses"
        )
        return Wanted(Request(lack.library, (), lack.needs, who), told, bounds=True)

    def _of_another_python(self, lack: Lack) -> Wanted:
        """Return what is told where Python's library has not what is taken: older releases take it, too."""
        owner, minor = lack.met.owner, self.goal.context.target.python_minor
        who = f"{owner} {self.walk.pinned[owner]} ({lack.met.place})" if owner else lack.met.place
        told = f"{who} imports {lack.path}, which Python {minor} does not have: Python {lack.needs} has it"
        return Wanted(Request(owner or PYTHON, (), "", who), told, bounds=True)

    def _older_importer(self, lack: Lack) -> Wanted | None:
        """Return the bound below which releases of the importer do not import what there is not."""
        owner, name = lack.met.owner, lack.library
        package = self.snapshot.package(owner) if owner else None
        pinned = self.walk.pinned[owner] if owner else ""
        spec = last_with(package, lambda version: not self.walk.imports(lack.met, version), pinned)
        if not spec:
            return None
        what = f"{owner} {pinned} imports {lack.path} ({lack.met.place})"
        there = (
            f"which {name} {self.walk.pinned[name]} does not have" if lack.library else "which is not there"
        )
        told = f"{owner}{spec}: {what}, {there}; what has it has no place here"
        return Wanted(Request(owner, (), spec, f"{owner} {pinned}"), told, bounds=True)

    def _brought(self, lack: Lack) -> Wanted | None:
        owner, root = lack.met.owner, lack.met.taken.module.partition(".")[0]
        name = distribution_of(self.matrix, root)
        package = self.snapshot.package(name)
        spec = last_with(package, lambda version: self.walk.brings(name, version, root))
        if spec is None:
            return None
        place, there = f"{owner} {self.walk.pinned[owner]}", name in self.walk.pinned
        spec = spec if there else spec or self._spec_of_extra(owner, name)
        why = f"which {name} {self.walk.pinned[name]} does not have" if there else "and does not require it"
        told = f"{name}{spec}: {place} imports {root} ({lack.met.place}), {why}"
        return Wanted(Request(name, (), spec, place), told, bounds=there) if spec or not there else None

    def _spec_of_extra(self, owner: str, name: str) -> str:
        """Return how a release bounds a package in the first of its extras that does."""
        package, other = self.snapshot.package(owner), self.snapshot.package(name)
        place = package.position.get(self.walk.pinned[owner]) if package else None
        if package is None or other is None or place is None or (row := package.row_of(place)) < 0:
            return ""
        told = (one for extra in sorted(package.extras(row)) for one in package.requirements(row, extra))
        return next((spec for one in told if one.name == name and (spec := other.spec_text(one.spec))), "")

    def _other_release(self, lack: Lack) -> Wanted | None:
        name, owner, taken = lack.library, lack.met.owner, lack.met.taken
        who = f"{owner} {self.walk.pinned[owner]} ({lack.met.place})" if owner else lack.met.place
        record, spans = load_record(self.matrix.folder, name), self.walk.on_record(taken, name)
        if record and spans:
            spec = specifier_of(list(record.versions), spans, self.walk.pinned[name])
        else:
            spec = self._with_module(lack)
        newest = self._of_its_day(owner, name) if owner else ""
        if not spec and newest:
            spec = self._since(lack, newest)
        if not spec or (newest and not SpecifierSet(spec).contains(newest)):
            return None
        here = Move(Version(self.walk.pinned[name]))
        if record and spans and not newest and is_open(record, f"{taken.module}.{taken.name}", here):
            return None
        told = f"{name}{spec}: {who} imports {lack.path}, which {name} {self.walk.pinned[name]} does not have"
        return Wanted(Request(name, (), spec, who), told, bounds=True)

    def _of_its_day(self, owner: str, name: str) -> str:
        """Return the newest release of a package when an owner's came out; "" where no day is told.

        What that lacked as well everybody would have missed: then it is not missed.
        """
        importer, package = self.snapshot.package(owner), self.snapshot.package(name)
        place = importer.position.get(self.walk.pinned[owner]) if importer else None
        day = importer.days[place] if importer and place is not None else 0
        out = [p for p, told in enumerate(package.days) if told <= day] if package and day else []
        finals = [p for p in out if package and package.finals >> p & 1]
        return package.versions[finals[-1]] if package and finals else ""

    def _with_module(self, lack: Lack) -> str:
        """Return the bound below which releases have what is taken."""
        package, pinned = self.snapshot.package(lack.library), self.walk.pinned[lack.library]
        return last_with(package, lambda version: self.walk.has(lack, version), pinned) or ""

    def _since(self, lack: Lack, newest: str) -> str:
        """Return the bound from which releases have what is taken, if that of the importer's day has it."""
        package, pinned = self.snapshot.package(lack.library), self.walk.pinned[lack.library]
        low, high = (package.position.get(one, 0) if package else 0 for one in (pinned, newest))
        if package is None or high <= low or not self.walk.has(lack, newest):
            return ""
        finals = [place for place in range(low, high + 1) if package.finals >> place & 1 or place == low]
        lacks, there = 0, len(finals) - 1
        while there - lacks > 1:
            middle = (there + lacks) // 2
            has = self.walk.has(lack, package.versions[finals[middle]])
            lacks, there = (lacks, middle) if has else (middle, there)
        return f">={package.versions[finals[there]]}"


def last_with(package: Package | None, has: Callable[[str], bool], before: str = "") -> str | None:
    """Return the bound (`<2`) below which releases have something, "" where the newest has it.

    None where none of those looked at has it: ever further back, then between the last two. Only older
    releases than `before` are looked at, where that is told: it is known to lack it.
    """
    end = package.position.get(before, 0) if package and before else len(package.versions) if package else 0
    places = [place for place in range(end) if package and package.finals >> place & 1]
    versions = [*(package.versions[place] for place in places), before] if package else [before]
    lacks, there, step = len(places), 0, 1
    while lacks and not has(versions[there := max(lacks - step, 0)]):
        lacks, step = there, step * 2
    if not lacks:
        return None
    while lacks - there > 1:
        middle = (there + lacks) // 2
        there, lacks = (middle, lacks) if has(versions[middle]) else (there, middle)
    return f"<{versions[lacks]}" if versions[lacks] else ""
