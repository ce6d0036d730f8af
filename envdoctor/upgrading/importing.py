"""What pinned releases lack of what they import of one another once code imports them, as their files tell.

From the imports of the code (or the packages that were looked up) on, the imports that run whenever a module
does are followed through the pinned releases: a module whose distribution is not pinned, and one that the
pinned release does not have, fail there. A library whose interface is recorded is followed no further than
the module that is named: it is judged by its record. What cannot be read is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envdoctor.harvest.import_conditions import IF, holds
from envdoctor.matrix import Matrix, tables
from envdoctor.matrix.interface_records import Record, Spans, load_record, recorded_libraries
from envdoctor.solve.versions import satisfies
from envdoctor.values import NamedTuple

if TYPE_CHECKING:
    from envdoctor.harvest.module_imports import Taken
    from envdoctor.harvest.module_reader import ModuleReader
    from envdoctor.harvest.release_modules import ReleaseModules

PYTHON = "python"
"""The library of a lack that is Python's own."""
LEVELS, MOST = 60, 4_000
"""How far imports are followed, and to how many modules in all."""


class Import(NamedTuple):
    """An import that runs: what is taken, by which package's module ("": by the code, at that place)."""

    taken: Taken
    owner: str
    place: str
    used: bool = False
    """True for a name of an imported module that is only asked for."""
    late: bool = False
    """True for what a library on record imports in modules that it brings only when they are asked for."""


class Lack(NamedTuple):
    """An import that fails: `library` is the pinned package without what is taken, "" where none has it."""

    met: Import
    library: str = ""
    needs: str = ""
    """The releases of the library that a generated module runs with, or the Python that has what is taken."""

    @property
    def path(self) -> str:
        """The dotted path of what is taken."""
        return ".".join(filter(None, (self.met.taken.module, self.met.taken.name if self.library else "")))


def recorded_spans(record: Record, taken: Taken) -> Spans:
    """Return the recorded releases that have what is taken; none where it is not on record."""
    return (
        record.names.get(taken.module, {}).get(taken.name)
        or record.modules.get(f"{taken.module}.{taken.name}")
        or record.modules.get(taken.module)
        or ()
    )


@dataclass(slots=True)
class Walk:
    """Follows imports through pinned releases (versions by name)."""

    matrix: Matrix
    reader: ModuleReader
    pinned: Mapping[str, str]
    is_standard: Callable[[str], bool]
    """True for the name of a module of Python's own library."""
    python_with: Callable[[str], str]
    """Returns the Python that has a dotted name, where the target's lacks it."""
    marker_holds: Callable[[str], bool]
    """True for a marker that holds on the target."""
    near: Callable[[str], Iterable[str]]
    """The packages that a pinned one requires; those that are asked for, where "" does."""
    own: frozenset[str] = frozenset()
    """The names of the code's own modules and folders."""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _providers: dict[str, str] = field(default_factory=dict)
    _recorded: frozenset[str] = frozenset()
    _generated: tuple[tables.GeneratedRow, ...] = ()
    _shared: frozenset[str] = frozenset()
    _tops: dict[str, str] = field(default_factory=dict)
    _searched: set[str] = field(default_factory=set)
    """The packages of which it is known what they bring."""

    def __post_init__(self) -> None:
        """Note which packages bring which modules by their names."""
        self._providers |= {name.replace("-", "_"): name for name in self.pinned}
        rows = self.matrix.rows(tables.ImportNameRow)
        self._providers |= {row.module: row.distribution for row in rows if row.distribution in self.pinned}
        self._recorded = frozenset(recorded_libraries(self.matrix.folder))
        self._generated = tuple(self.matrix.rows(tables.GeneratedRow))
        shared = self.matrix.rows(tables.SharedFolderRow)
        self._shared = frozenset(name for row in shared for name in row.names)

    def lacks(self, imports: Iterable[Import]) -> list[Lack]:
        """Return what fails, each path once, in the order in which it is met."""
        found: dict[str, Lack] = {}
        level, met = list(imports), set[tuple[str | bool, ...]]()
        for _ in range(LEVELS):
            level = [one for one in level if not one.taken.when or self._holds(one.taken.when)]
            # what was met once leads to nothing further, and fails by the same path
            fresh = {(one.owner, *one.taken[1:3], one.used, one.late): one for one in reversed(level)}
            level = [one for key, one in reversed(fresh.items()) if key not in met]
            met.update(fresh)
            absent, placed = self._placed(level)
            for one in (*absent, *self._missing(placed), *self._unfit(placed)):
                found.setdefault(one.path, one)
            level = list(self._followed(placed))
            if not level or len(self._seen) > MOST:
                break
        return list(found.values())

    def _holds(self, condition: str) -> bool:
        return holds(
            condition, self.marker_holds, lambda root: self.pinned.get(self._providers.get(root, ""), "")
        )

    def roots_of(self, name: str) -> Iterator[Import]:
        """Yield the imports of a package's own modules, as one who has installed it would."""
        from envdoctor.harvest.module_imports import Taken

        release = self.reader.release(name, self.pinned[name])
        tops = sorted(top for top in release.tops if release.file_of(top)) if release else []
        named = [top for top in tops if top.lower() == name.replace("-", "_")]
        for top in named or (tops if len(tops) == 1 else ()):
            self._providers.setdefault(top, name)
            yield Import(Taken(0, top), "", f"{name} {self.pinned[name]}")

    def brings(self, name: str, version: str, module: str) -> bool:
        """True where a release has a module of that name at its top."""
        release = self.reader.release(name, version)
        return release is not None and module in release.tops

    def has(self, lack: Lack, version: str) -> bool:
        """True where another release of the library has what is taken."""
        release, (_, module, name, _) = self.reader.release(lack.library, version), lack.met.taken
        if release is None or not release.has(module):
            return False
        if not name or release.has(f"{module}.{name}"):
            return True
        self.reader.read({(release.name, version): [module]})
        told = (self.reader.release(lack.library, version) or release).told.get(module)
        return told is not None and name in told.names

    def imports(self, one: Import, version: str) -> bool:
        """True where another release of the importer imports the same there, or cannot be read."""
        module = one.place.partition(",")[0]
        release = self.reader.release(one.owner, version)
        if release is None:
            return True
        self.reader.read({(one.owner, version): [module]})
        told = (self.reader.release(one.owner, version) or release).told.get(module)
        named = (*told.taken, *told.used) if told else ()
        return any(taken[1:3] == one.taken[1:3] for taken in named)

    def _placed(self, level: Sequence[Import]) -> tuple[list[Lack], list[tuple[Import, ReleaseModules]]]:
        """Return what fails whatever is read, and what is to be read, with the releases that have it."""
        failing, wanted = list[Lack](), list[tuple[Import, str]]()
        for one in level:
            root = one.taken.module.partition(".")[0]
            provider = self._provider(root, one.owner)
            if not provider:
                failing += self._gone_with_python(one, root) or self._absent(one, root)
                continue
            apart = one.late or (one.owner and not {one.owner, provider} <= self._recorded)
            failing += [Lack(one, provider)] if apart and self.on_record(one.taken, provider) else []
            wanted += [(one, provider)] if self._is_read(one, provider) else []
        self.reader.open((name, self.pinned[name]) for _, name in wanted)
        opened = ((one, self.reader.release(name, self.pinned[name])) for one, name in wanted)
        return failing, [(one, release) for one, release in opened if release is not None]

    def _provider(self, root: str, owner: str) -> str:
        own = self.reader.release(owner, self.pinned[owner]) if owner else None
        if own is not None and root in own.tops:
            return owner
        if self.is_standard(root) or (not owner and root in self.own):
            return ""
        return self._providers.get(root) or self._brought_elsewhere(root, owner)

    def _gone_with_python(self, one: Import, root: str) -> list[Lack]:
        """Return that the target's Python does not have what is taken of another's own library."""
        if not one.owner and root in self.own:
            return []
        python = self.python_with(".".join(filter(None, one.taken[1:3])))
        return [Lack(one, PYTHON, python)] if python else []

    def _absent(self, one: Import, root: str) -> list[Lack]:
        """Return what a package imports that it neither has itself nor carries a copy of."""
        if one.used or not one.owner or root in self._shared or self.is_standard(root):
            return []
        release = self.reader.release(one.owner, self.pinned[one.owner])
        if release is None:
            return []
        asking = release.file_of(one.place.partition(",")[0])  # tqdm/rich.py is no copy of rich
        return [] if any(path != asking for path in release.copies_of(root)) else [Lack(one)]

    def _is_read(self, one: Import, name: str) -> bool:
        """False for the top of a library on record, and for what such a library imports as it is imported."""
        recorded = name in self._recorded
        if one.used:
            return not recorded and one.owner != name and "." not in one.taken.module
        inside = bool(one.taken.name or "." in one.taken.module)
        return not recorded or (inside and (one.late or one.owner != name))

    def _missing(self, placed: Sequence[tuple[Import, ReleaseModules]]) -> Iterator[Lack]:
        """Read the modules that are named, and yield what the releases do not have of them."""
        wanted: dict[tuple[str, str], set[str]] = {}
        for one, release in placed:
            run = self._run_by(one, release)
            wanted.setdefault((release.name, release.version), set()).update((*run, *self._telling(one)))
        self.reader.read(wanted)
        for one, release in placed:
            if one.owner != release.name and self._lacks(one, release):
                yield Lack(one, release.name)

    def _unfit(self, placed: Sequence[tuple[Import, ReleaseModules]]) -> Iterator[Lack]:
        """Yield the generated modules among those that run now which the pinned runtime does not take."""
        for one, known in placed:
            release = self.reader.release(known.name, known.version) or known
            for module in self._run_by(one, release):
                told = release.told.get(module)
                for generator, version in told.made if told else ():
                    for runtime, needs in self._runtimes(generator, version):
                        taken = one.taken._replace(module=runtime, name=needs)
                        met = Import(taken, release.name, f"{module}, by {generator} {version}")
                        yield Lack(met, runtime, needs)

    def _runtimes(self, generator: str, version: str) -> Iterator[tuple[str, str]]:
        """Yield the pinned runtimes that do not take what a generator of a version wrote, with what does."""
        for row in self._generated:
            if row.generator == generator and (row.made == "*" or satisfies(version, row.made)):
                needs, pinned = row.needs.format(made=version), self.pinned.get(row.distribution)
                if pinned and not satisfies(pinned, needs):
                    yield row.distribution, needs

    def _telling(self, one: Import) -> list[str]:
        """Return the modules that tell where a name stands, and how its library brings names."""
        return [] if one.used else [one.taken.module, one.taken.module.partition(".")[0]]

    def _run_by(self, one: Import, release: ReleaseModules) -> list[str]:
        """Return the modules of a release that an import runs."""
        if one.used:
            return []
        module, name = one.taken.module, one.taken.name
        parts = module.split(".")
        if release.name in self._recorded:
            chain = [module] if len(parts) > 1 else []
        else:
            chain = [".".join(parts[: end + 1]) for end in range(len(parts))]
        inner = f"{module}.{name}"
        return [*chain, *([inner] if name and release.file_of(inner) else [])]

    def _lacks(self, one: Import, release: ReleaseModules) -> bool:
        """True where the files of a release have not what is taken."""
        module, name = one.taken.module, one.taken.name
        if release.name in self._recorded:
            return False
        above = module.rpartition(".")[0]
        if not release.has(module) and not above:
            return not self._brought_elsewhere(module, one.owner or release.name)
        if not release.has(module):
            return bool(above) and bool(release.file_of(above)) and not self._is_open(release, above)
        return bool(name) and not self._may_have(release, module, name, set())

    def _may_have(self, release: ReleaseModules, module: str, name: str, seen: set[str]) -> bool:
        """False where neither a module nor those of the release of which it takes all names have a name."""
        seen.add(module)
        self.reader.read({(release.name, release.version): [module]})
        told = (self.reader.release(release.name, release.version) or release).told.get(module)
        if told is None or (told.open_ and not told.stars):
            return True
        if name in told.names or release.has(f"{module}.{name}"):
            return True
        return any(
            not release.has(star) or self._may_have(release, star, name, seen)
            for star in told.stars
            if star not in seen
        )

    def _is_open(self, release: ReleaseModules, module: str) -> bool:
        told = release.told.get(module)
        return told is None or told.open_

    def on_record(self, taken: Taken, library: str) -> list[list[int]]:
        """Return the recorded releases that have what is taken, where the pinned one has not."""
        from packaging.version import Version

        record = load_record(self.matrix.folder, library) if library in self._recorded else None
        version = Version(self.pinned[library])
        spans = record and recorded_spans(record, taken)
        if not record or not spans or record.has(spans, version):
            return []
        return [list(span) for span in spans]

    def _followed(self, placed: Sequence[tuple[Import, ReleaseModules]]) -> Iterator[Import]:
        """Yield the imports of the modules that run now for the first time."""
        for one, known in placed:
            release = self.reader.release(known.name, known.version) or known
            late = self._is_late(one, release)
            for module in self._run_by(one, release):
                if (release.name, module) in self._seen:
                    continue
                self._seen.add((release.name, module))
                told = release.told.get(module)
                place = f"{module}, line"
                for taken in told.taken if told else ():
                    for each in self._each(taken, release):
                        yield Import(each, release.name, f"{place} {taken.line}", late=late)
                for taken in told.used if told else ():
                    yield Import(taken, release.name, f"{place} {taken.line}", used=True)
            told = release.told.get(one.taken.module)
            name = one.taken.name
            if told and name and name not in told.names and not release.file_of(f"{one.taken.module}.{name}"):
                place = f"{one.taken.module}, line"
                for taken in told.asked:
                    yield Import(taken, release.name, f"{place} {taken.line}", late=late)
            lazily, _, when = (told.names.get(name, "") if told else "").partition(IF)
            if lazily:
                taken = one.taken._replace(module=lazily, when=when)
                yield Import(taken, release.name, one.place, late=release.name in self._recorded)

    def _is_late(self, one: Import, release: ReleaseModules) -> bool:
        """True for modules of a library on record that brings most of its names when they are asked for."""
        top = release.told.get(one.taken.module.partition(".")[0])
        if release.name not in self._recorded or top is None:
            return False
        return top.open_ and 2 * sum(map(bool, top.names.values())) > len(top.names)

    def _each(self, taken: Taken, release: ReleaseModules) -> Iterator[Taken]:
        """Yield an import, or those of all modules of a folder that it stands for."""
        if taken.name[:1] != "*":
            yield taken
            return
        for module in release.within(taken.module, taken.name[1:]):
            yield taken._replace(module=module, name="")

    def _brought_elsewhere(self, root: str, owner: str) -> str:
        """Return the pinned package that brings a module under another name than its own; "" for none.

        It is looked for among what the owner requires, and among all others where it is not there.
        """
        if root in self._shared:
            return ""
        for names in (self.near(owner), self.pinned if owner else ()):
            fresh = [name for name in names if name in self.pinned and name not in self._searched]
            self._searched.update(fresh)
            self.reader.open((name, self.pinned[name]) for name in fresh)
            for name in fresh:
                release = self.reader.release(name, self.pinned[name])
                for top in release.tops if release else ():
                    self._tops.setdefault(top, name)
            if root in self._tops:
                return self._tops[root]
        return ""
