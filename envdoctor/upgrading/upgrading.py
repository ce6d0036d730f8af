"""The public door: paths and the releases that change in, breaks and a patch out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from packaging.version import Version

from envdoctor.matrix import Matrix
from envdoctor.matrix.interface_records import load_record
from envdoctor.matrix.late_tables import holding
from envdoctor.matrix.snapshot import Snapshot
from envdoctor.rules.ranges import parse_version
from envdoctor.solve.answer import PinSet
from envdoctor.solve.goal import Goal
from envdoctor.upgrading.breaks import Break, users
from envdoctor.upgrading.classes import Brought, Project
from envdoctor.upgrading.gone import Move
from envdoctor.upgrading.held import Held
from envdoctor.upgrading.judging import Judge
from envdoctor.upgrading.launched import Script, judge_launches, parsed_by
from envdoctor.upgrading.patching import diff_of, patched
from envdoctor.upgrading.reading import read_cells
from envdoctor.upgrading.requirements import judge_requirements
from envdoctor.upgrading.settings import judge_settings, judge_variables
from envdoctor.upgrading.sources import (
    COMMANDED,
    KEYED,
    Source,
    find_files,
    is_for_another,
    python_of,
    read_text,
    requires,
)
from envdoctor.upgrading.uses import Kind, Read, Use
from envdoctor.values import Shown

Cells = Sequence[tuple[Source, Read | None]]
"""The texts of a file, each with what was read of it; None for one that cannot be parsed."""
SCHEMA = "envdoctor.upgrade/1"
AGE = 4 * 365
"""Days before a library's newest release: with what was there then, code of today may still be written."""
_WORD = re.compile(r"\w+")
_LOADED = re.compile(r"\b(\w{1,80})\.from_pretrained\b")
_IN_TEXT = frozenset((Kind.SETTING, Kind.VARIABLE, Kind.REQUIREMENT))
"""What is found in the text of files, whatever their kind."""
_TELLING = 5
"""Letters from which the name of what is called tells its class."""


@dataclass(frozen=True, slots=True)
class Found:
    """A break with its file, and the notebook's cell (0: none)."""

    file: str
    cell: int
    told: Break

    def as_json(self) -> dict[str, Any]:
        """Return the break as the contract shows it."""
        told = {
            "file": self.file,
            "line": self.told.use.place.line,
            "name": self.told.name,
            "since": self.told.since,
            "replacement": self.told.replacement or None,
            "certainty": self.told.certainty.value,
        }
        return (
            told | ({"cell": self.cell} if self.cell else {}) | ({"warned": True} if self.told.warned else {})
        )


@dataclass(slots=True)
class Known:
    """What was read of code, for all that it is judged by."""

    cells: dict[Path, Cells] = field(default_factory=dict)
    project: Project | None = None


@dataclass(slots=True)
class Judged:
    """What judging the code found."""

    breaks: list[Found] = field(default_factory=list)
    unfollowed: int = 0
    unread: list[str] = field(default_factory=list)
    files: int = 0
    patch: str = ""

    @property
    def failing(self) -> list[Found]:
        """What fails, without what only warns."""
        return [found for found in self.breaks if not found.told.warned]


@dataclass(frozen=True, slots=True)
class Upgrade(Shown):
    """The whole answer."""

    judged: Judged
    pins: PinSet

    @property
    def exit_code(self) -> int:
        """3 where the set hangs on what is not known, 1 for a break or a conflict, else 0."""
        if self.pins.status == "unknown":
            return 3
        return 1 if self.judged.failing or self.pins.status != "solved" else 0

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "schema": SCHEMA,
            "breaks": [found.as_json() for found in self.judged.failing],
            "warned": [found.as_json() for found in self.judged.breaks if found.told.warned],
            "unfollowed": self.judged.unfollowed,
            "unread": self.judged.unread,
            "files": self.judged.files,
            "pins": self.pins.as_json(),
            "exit_code": self.exit_code,
        }


def moves_of(goal: Goal, pins: PinSet) -> dict[str, Move]:
    """Return the libraries that the answer changes or brings, with their releases.

    Without an answer the newest release that a request admits is taken.
    """
    installed = goal.context.installed
    versions = {pin.name: pin.version for pin in pins.pins} or dict(_admitted(goal))
    asked = {request.name for request in goal.requests}
    moves = {}
    for name, text in versions.items():
        new, old = parse_version(text), parse_version(installed.get(name, ""))
        if new is not None and new != old and (old is not None or name in asked):
            moves[name] = Move(new, old)
    return moves


def _admitted(goal: Goal) -> Iterator[tuple[str, str]]:
    from envdoctor.specifiers import SpecifierSet

    for request in goal.requests:
        package = goal.context.snapshot.package(request.name)
        for version in reversed(package.versions if package else []):
            parsed = parse_version(version)
            if parsed and not parsed.is_prerelease and SpecifierSet(request.spec).contains(parsed):
                yield request.name, version
                break


def installed_moves(versions: Mapping[str, str]) -> dict[str, Move]:
    """Return what is installed as releases that code is judged by."""
    parsed = ((name, parse_version(text)) for name, text in versions.items())
    return {name: Move(version) for name, version in parsed if isinstance(version, Version)}


def moves_of_its_time(snapshot: Snapshot, versions: Mapping[str, str]) -> Iterator[tuple[str, Move]]:
    """Yield releases, each with that of the time from which on code is taken to be.

    What was gone before that was never there, or is there in a way that no file tells.
    """
    for name, text in versions.items():
        package, new = snapshot.package(name), parse_version(text)
        if package is None or new is None:
            continue
        days = package.days
        finals = [place for place in range(len(days)) if package.finals >> place & 1]
        until = (days[finals[-1]] if finals else 0) - AGE
        old = next((place for place in reversed(finals) if days[place] <= until), min(finals, default=None))
        if old is not None and (version := parse_version(package.versions[old])) and version < new:
            yield name, Move(new, version)


def judge_paths(
    matrix: Matrix,
    moves: Mapping[str, Move],
    paths: Sequence[str],
    kinds: Collection[Kind] = tuple(Kind),
    lately: Mapping[str, Move] = MappingProxyType({}),
    known: Known | None = None,
) -> Judged:
    """Judge the files under the paths, code by these kinds of uses; raises InputError for no path.

    `lately` are the moves of code that is taken to run as it is, from the releases of its time. What is read
    of a file is the same whatever moves: it goes into `known`, and is taken from there when fewer move.
    """
    known = Known() if known is None else known
    judged, judge, defined = Judged(), Judge(matrix, moves, kinds, lately), dict[str, set[Path]]()
    in_text = not _IN_TEXT.isdisjoint(kinds)
    files = [path for path in find_files(paths) if not is_for_another(path, moves)]
    apart = list[Path]()
    project = known.project = known.project or Project(files, lambda module: judge.library(module) in moves)
    named, loaded, scripts = judge.named(), set[str](), dict[str, Script]()
    for path in files if in_text else (path for path in files if path.suffix in (".py", ".ipynb")):
        text = read_text(path)
        if text is None:
            judged.unread.append(str(path))
            continue
        judged.files += 1
        loaded.update(_LOADED.findall(text))
        if path.suffix == ".py" and not named.search(text) and not project.leans(path, text):
            apart.append(path)
        elif path.suffix in (".py", ".ipynb"):
            if path not in known.cells:
                known.cells[path] = _read_python(path, text, project.brought_to(path), judge.held)
            _judge_python(judge, path, known.cells[path], judged, defined)
            if in_text and path.suffix == ".py" and (script := parsed_by(text)) is not None:
                scripts[path.name] = script if path.name not in scripts else Script(frozenset(), ())
        if in_text:
            judged.breaks += [Found(str(path), 0, one) for one in _judge_text(judge, path, text)]
    _define_apart(apart, judged.breaks, defined)
    judged.breaks = [
        one for one in judged.breaks if not _is_own(matrix, one, defined) and _is_made_so(one, loaded)
    ]
    judged.breaks += [*_launched(judge, scripts, files, judged.breaks)]
    return judged


def _launched(
    judge: Judge, scripts: Mapping[str, Script], files: Iterable[Path], told: Iterable[Found]
) -> Iterator[Found]:
    """Yield the options in commands that start one of the scripts and that break, but those told already."""
    known = {(one.file, one.told.use.place) for one in told}
    for path in (one for one in files if scripts and one.suffix in COMMANDED):
        for one in judge_launches(judge, scripts, read_text(path) or ""):
            if (str(path), one.use.place) not in known:
                yield Found(str(path), 0, one)


def _is_made_so(found: Found, loaded: Collection[str]) -> bool:
    """True but for a class made in a way that only matters to one that is loaded, which none here is."""
    use = found.told.use
    return use.kind is not Kind.OVERRIDE or not use.receiver or use.receiver in loaded


def _define_apart(apart: Sequence[Path], breaks: Sequence[Found], defined: dict[str, set[Path]]) -> None:
    """Add what files define that use no library that moves, as far as a break asks whose a name is."""
    asked = {name for one in breaks for name in _own_names(one.told.use, Path(one.file).suffix)}
    words = {word for name in asked for word in _WORD.findall(name)}
    if not words:
        return
    any_word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
    for path in apart:
        text = read_text(path) or ""
        read = next(read_cells((text,))) if any_word.search(text) else None
        for name in read.defined if read else ():
            defined.setdefault(name, set()).add(path)


def _is_own(matrix: Matrix, found: Found, defined: Mapping[str, Collection[Path]]) -> bool:
    """True for what nothing tells the owner of, and that the code itself defines somewhere.

    What tests define stands in for something in these tests alone, and an argument of a function is that
    of the text that defines it. What is called as the library's classes are named is the library's.
    """
    use, file = found.told.use, Path(found.file)
    if use.kind is Kind.KEY and use.path and use.path not in defined:
        return True  # handed to what is not the code's own, which is whoever's
    argument = use.kind is Kind.LOOSE and bool(use.path)
    bare = use.kind is Kind.CALL and not use.count and not use.given
    others = defined.get(f"{use.name}(…)", ()) if bare else ()  # these need what is not given
    near = [
        one
        for name in _own_names(use, file.suffix)
        for one in defined.get(name, ())
        if one not in others
        if one == file or (not argument and (one.name == "conftest.py" or not _is_test(one)))
    ]
    record = load_record(matrix.folder, found.told.library) if near else None
    if record is not None and use.kind is Kind.CALL and record.root in use.made:
        return False  # what it is called on is an instance of the library's
    if record is None or len(use.receiver) < _TELLING or use.receiver.endswith(("args", "config")):
        return bool(near)
    owners = (owner.lower() for owner in holding(record.members, use.name))
    return not any(use.receiver.lower().strip("_") in owner for owner in owners)


def _own_names(use: Use, suffix: str) -> Iterator[str]:
    """Yield how the code itself would define what is used: a name, a field, an argument of a function.

    What `self` is given is no setting of what is called `args` or `config`; a key in a file of settings may
    be a field of the code's own class.
    """
    match use.kind:
        case Kind.SETTING:
            yield from () if suffix == ".py" else (use.name,)
        case Kind.LOOSE | Kind.KEY if use.path:
            yield f"{use.path}({use.name})"
        case Kind.MEMBER if use.receiver:
            yield use.name
        case Kind.LOOSE if "=" in use.given:
            return  # it is set here, on what is called as the library's is
        case Kind.LOOSE | Kind.CALL:
            yield from (use.name, f"{use.receiver}.{use.name}")
            if not use.receiver.endswith(("args", "config")):
                yield f"self.{use.name}"
        case _:
            return


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") or any(
        part in ("test", "tests", "testing") for part in path.parts[:-1]
    )


def _judge_text(judge: Judge, path: Path, text: str) -> Iterator[Break]:
    if path.suffix in (*KEYED, *COMMANDED, ".py"):
        yield from judge_settings(judge, path.suffix, text)
    if requires(path) or path.suffix == ".py":
        yield from judge_requirements(judge.moves, text, code=not requires(path))
    if path.suffix != ".ipynb":
        yield from judge_variables(judge.matrix, judge.moves, path.suffix, text)


def _read_python(path: Path, text: str, brought: Brought, held: Held) -> Cells:
    sources = list(python_of(path, text))
    return list(zip(sources, read_cells((one.text for one in sources), brought, held), strict=True))


def _judge_python(
    judge: Judge, path: Path, cells: Cells, judged: Judged, defined: dict[str, set[Path]]
) -> None:
    broken: list[Break] = []
    for source, read in cells:
        if read is None:
            judged.unread.append(f"{source.file}{f', cell {source.cell}' if source.cell else ''}")
            continue
        judged.unfollowed += read.unfollowed
        for name in read.defined:
            defined.setdefault(name, set()).add(path)
        breaks = list(judge.breaks(read.uses))
        broken += breaks
        used = (user for one in broken for user in users(one, read.written))
        lines = {(one.use.place.line, one.name): one for one in (*used, *breaks)}
        judged.breaks += (Found(source.file, source.cell, one) for _, one in sorted(lines.items()))
        if breaks and not source.cell:
            judged.patch += diff_of(source.file, source.text, patched(source.text, breaks, read.written))
