"""Reads the interfaces of libraries' releases from the index.

    python -m envdoctor.harvest.interface_reader [LIBRARY]... [--without LIBRARY==RELEASE]...

writes `matrices/releases/interfaces/<library>.tables`. What was read of a release is kept in the user's
cache, so that an interrupted run goes on where it stopped; the same releases give the same bytes. A library
of which a release cannot be read keeps its former record (exit code 3) unless `--without` leaves it out.
"""

from __future__ import annotations

import ast
import fnmatch
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType

from packaging.version import Version

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest import interfaces, module_syntax, served_names, skeletons
from envdoctor.harvest.index_pages import IndexFile, read_releases
from envdoctor.harvest.interface_sources import LIBRARIES, Library, Step
from envdoctor.harvest.interface_tables import encode
from envdoctor.harvest.interfaces import (
    SOURCES,
    Interface,
    Read,
    module_of,
    scan_interface,
    without_inner,
)
from envdoctor.harvest.remote_archive import RemoteZip, naming, read_sdist_members
from envdoctor.harvest.skeletons import classes_of
from envdoctor.harvest.unread import Releases, parse_asked, refuse, run_writer
from envdoctor.matrix.interface_records import (
    ARGUMENTS,
    FOLDER,
    IMPORTS,
    INDEX,
    SUFFIX,
    Record,
    argument_key,
    import_key,
    load_record,
    pack_owners,
    recorded_libraries,
)
from envdoctor.matrix.late_tables import pack_tables
from envdoctor.matrix.snapshot import STACK
from envdoctor.python_source import parse_python

WHOLE = 48 << 20
"""Wheels up to this many bytes are read whole; of larger ones only the Python files."""
_TELLING = 6
"""Letters from which an argument's name tells of whose call it is."""
AHEAD = 4
"""Releases that are fetched while another is read."""
_LISTED = re.compile(rb"^__all__ = \[[^\]]*\]", re.MULTILINE)
_TOP = re.compile(
    rb"^(?:(?:async[ \t]{1,4})?def|class)[ \t]{1,4}(?P<own>\w{1,100})"
    rb"|^(?P<set>(?!logger\b|\w{0,100}DOC)[A-Za-z]\w{0,100})[ \t]{0,4}(?::[^=\n]{1,200})?=(?!=)"
    rb"|^(?:if|elif|else|try|except|finally|with|from|import)\b[^\n]*(?:\n(?:[ \t)\]}#][^\n]*)?)*",
    re.MULTILINE,
)
"""What binds names at the top of a file: a definition, a value, an import, what stands under a question."""
_DATA = re.compile(r"^[^/]{1,120}\.data/(?:purelib|platlib)/")


def digest_of(*modules: ModuleType) -> str:
    """Return a digest of what modules do: their syntax without docstrings."""
    told = (ast.unparse(_undocumented(Path(str(module.__file__)).read_text("utf-8"))) for module in modules)
    return f"{zlib.crc32(chr(0).join(told).encode()):08x}"


def _undocumented(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


_KEPT = f"envdoctor.interface-release/5 {digest_of(served_names, module_syntax, interfaces, skeletons)}"
"""Under this a release is kept: what another reader told of it is read again."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads libraries from one index, and keeps what it read in `cache`."""

    fetcher: Fetcher
    index: str
    cache: Path
    without: Releases = frozenset()
    unread: list[str] = field(default_factory=list)
    """The releases that could not be read, each with its reason."""

    def read(self, library: Library) -> dict[str, Interface]:
        """Return the interfaces of the chosen releases, oldest first; raises Unavailable.

        A release whose files cannot be read is left out, and told in `unread`.
        """
        releases = read_releases(self.fetcher, self.index, library.name)
        counting = [v for v in releases if _counts(v, library) and (library.name, v) not in self.without]
        chosen = chosen_releases(counting, library.step)
        wanted = [(version, file) for version in chosen if (file := _best_file(releases[version]))]
        known: Read = {}
        found: dict[str, Interface] = {}
        with ThreadPoolExecutor(AHEAD) as pool:
            for start in range(0, len(wanted), AHEAD):
                some = wanted[start : start + AHEAD]
                files = list(pool.map(lambda item: self._files(library, *item), some))
                for (version, _), told in zip(some, files, strict=True):
                    interface = (
                        told if isinstance(told, Interface) else self._scan(library, version, told, known)
                    )
                    if interface.modules:
                        found[version] = interface
        return found

    def read_release(self, library: Library, version: str) -> Interface:
        """Return the interface of one release; raises Unavailable."""
        return read_files(self.files_of(library, version), library)

    def files_of(self, library: Library, version: str) -> dict[str, bytes | None]:
        """Return what is read of one release's files; raises Unavailable."""
        file = _best_file(read_releases(self.fetcher, self.index, library.name).get(version, ()))
        if file is None:
            raise Unavailable(f"the index has no {library.name} {version}")
        return _read_files(self.fetcher, file, library)

    def _files(self, library: Library, version: str, file: IndexFile) -> dict[str, bytes | None] | Interface:
        """Return a release's files, or what was kept of it."""
        kept = _kept(self._path(library, version))
        if kept is not None:
            return kept
        try:
            return _read_files(self.fetcher, file, library)
        except Unavailable as error:
            self.unread.append(f"{library.name} {version} ({error})")
            return {}

    def _scan(self, library: Library, version: str, files: dict[str, bytes | None], known: Read) -> Interface:
        interface = read_files(files, library, known)
        if interface.modules:
            path = self._path(library, version)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, zlib.compress(json.dumps([_KEPT, *_lists(interface)]).encode(), 6))
        return interface

    def _path(self, library: Library, version: str) -> Path:
        told = (*library.members, "listed") if library.listed else library.members
        told = (*told, "named", *library.named) if library.named else told
        told = (*told, "defined", *library.defined) if library.defined else told
        chosen = f"-{zlib.crc32(repr(told).encode()):08x}" if told else ""
        return self.cache / f"{library.name}{chosen}" / f"{version}.json.z"


def read_files(files: Mapping[str, bytes | None], library: Library, known: Read | None = None) -> Interface:
    """Return the interface of a release; of files that are read for their `__all__` no name of their own."""
    own = {module_of(path) or "" for path in files if _is_defined(path, library)}
    interface = scan_interface(files, library.root, known, own)
    if library.part:
        made = frozenset(one for one in interface.keywords if one.partition(":")[0].endswith(".__init__"))
        return Interface(interface.modules, keywords=made, members=interface.members, bases=interface.bases)
    if not library.listed:
        return interface
    whole = {module_of(path) for path in files if _chosen(path, library) or _is_named(path, library)}
    return replace(interface, names=frozenset(n for n in interface.names if n.partition(":")[0] in whole))


def _kept(path: Path) -> Interface | None:
    try:
        schema, *parts = json.loads(zlib.decompress(path.read_bytes()))
    except (OSError, ValueError, zlib.error):
        return None
    return Interface(*map(frozenset, parts)) if schema == _KEPT else None


def _lists(interface: Interface) -> list[list[str]]:
    return [sorted(getattr(interface, part.name)) for part in fields(interface)]


def _counts(version: str, library: Library) -> bool:
    parsed = Version(version)
    early = parsed.is_prerelease and not Version(library.since).is_prerelease
    return not early and parsed >= Version(library.since)


def chosen_releases(versions: Iterable[str], step: Step) -> list[str]:
    """Return the versions that a step chooses, in order."""
    ordered = sorted(versions, key=Version)
    if step is Step.ALL:
        return ordered
    groups: dict[tuple[int, ...], list[str]] = {}
    numbers = 3 if step is Step.PATCHES else 2
    for version in ordered:
        groups.setdefault(Version(version).release[:numbers], []).append(version)
    ends = [v for group in groups.values() for v in (group[:1] + (group[-1:] if step is Step.ENDS else []))]
    return list(dict.fromkeys([*ends, *ordered[-1:]]))


def _best_file(files: Sequence[IndexFile]) -> IndexFile | None:
    """Prefer a pure wheel, then a Linux one, then any wheel, then the source."""
    usable = [file for file in files if not file.yanked] or list(files)
    return min(usable, key=_rank, default=None)


def _rank(file: IndexFile) -> int:
    if not file.is_wheel:
        return 3 if file.filename.endswith((".tar.gz", ".zip", ".tar.bz2")) else 4
    if file.filename.endswith("-none-any.whl"):
        return 0
    return 1 if "x86_64" in file.filename and "linux" in file.filename else 2


def _read_files(fetcher: Fetcher, file: IndexFile, library: Library) -> dict[str, bytes | None]:
    with naming(file.filename):
        if not file.is_wheel:
            found = read_sdist_members(fetcher, file.url, lambda n: n.endswith(SOURCES), lambda _: False)
            return {_without_root(name): body for name, body in found.items()}
        whole = {_installed(name): body for name, body in _members(fetcher, file, library).items()}
    return {name: narrowed(name, body, library) for name, body in whole.items()}


def _members(fetcher: Fetcher, file: IndexFile, library: Library) -> dict[str, bytes | None]:
    """Return the sources in a wheel by name, with the content of those that are read."""
    if (file.size or WHOLE + 1) <= WHOLE:
        archive = zipfile.ZipFile(io.BytesIO(fetcher.get(file.url, cap=2 * WHOLE).body))
        names = [name for name in archive.namelist() if name.endswith(SOURCES)]
        chosen = [name for name in names if _is_read(_installed(name), library)]
        return dict.fromkeys(names) | {name: archive.read(name) for name in chosen}
    remote = RemoteZip(fetcher, file.url)
    names = [name for name in remote.members if name.endswith(SOURCES)]
    chosen = [name for name in names if _is_read(_installed(name), library)]
    return dict.fromkeys(names) | dict(remote.read_many(chosen))


def narrowed(name: str, body: bytes | None, library: Library) -> bytes | None:
    """Return what is read of a file: of one that is not chosen its names, or its `__all__` at most."""
    if body is None or _chosen(name, library):
        return body
    if _is_defined(name, library):
        return classes_of(body)
    listed = _LISTED.search(body) if library.listed else None
    exported = listed[0] if listed else b""
    return outline_of(body) + b"\n" + exported if _is_named(name, library) else exported


def outline_of(body: bytes) -> bytes:
    """Return what binds a file's names, each in a line: far less to parse than the file."""
    found = list(_TOP.finditer(body))
    outline = b"\n".join(b"%b = 0" % name if (name := one["own"] or one["set"]) else one[0] for one in found)
    try:
        parse_python(outline)
    except SyntaxError:
        return b"".join(b"%b = 0\n" % name for one in found if (name := one["own"] or one["set"]))
    return outline


def _installed(name: str) -> str:
    """Return where a wheel's member is installed: old wheels keep packages under `NAME.data/purelib`."""
    return _DATA.sub("", name)


def _chosen(name: str, library: Library) -> bool:
    inside = name.startswith(f"{library.root.replace('.', '/')}/") or name.startswith(f"{library.root}.py")
    if not inside or "/tests/" in name:
        return False
    return not library.members or any(_matches(name, pattern) for pattern in library.members)


def _is_named(name: str, library: Library) -> bool:
    """True for a file of which only the names are read; what converts checkpoints is nobody's interface."""
    return "/convert_" not in name and any(_matches(name, pattern) for pattern in library.named)


def _is_defined(name: str, library: Library) -> bool:
    """True for a file of whose classes is read what they define themselves."""
    return any(_matches(name, pattern) for pattern in library.defined)


def _is_read(name: str, library: Library) -> bool:
    told = library.listed or _chosen(name, library) or _is_named(name, library)
    return told or _is_defined(name, library)


def _matches(name: str, pattern: str) -> bool:
    if "**" in pattern:
        return fnmatch.fnmatchcase(name, pattern.replace("**", "*"))
    return name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern)


def _without_root(name: str) -> str:
    """Return a path of an sdist without the sdist's folder and the usual ones above the package."""
    inside = name.partition("/")[2]
    for folder in ("src/", "lib/", "lib3/", "python/"):
        inside = inside.removeprefix(folder)
    return inside


def main(arguments: Sequence[str]) -> None:
    """Write the records of the named libraries (all when none is named); raises Unavailable, InputError."""
    from platformdirs import user_cache_path

    from envdoctor.harvest.index_settings import read_index_settings

    asked = parse_asked(
        arguments, (library.record for library in LIBRARIES), "envdoctor.harvest.interface_reader"
    )
    settings = read_index_settings()
    folder = Path(find_folder(), "releases", FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    unread: list[str] = []
    with Fetcher(FetchSettings(certificates=settings.certificates, proxy=settings.proxy)) as fetcher:
        cache = user_cache_path("envdoctor") / "interfaces"
        for library in (one for one in LIBRARIES if asked.wants(one.record)):
            reader = Reader(fetcher, settings.url, cache, asked.without)
            found = {v: without_inner(told, library.inner) for v, told in reader.read(library).items()}
            unread += reader.unread
            if not reader.unread:
                record = {"library": library.name, "root": library.root, **encode(found, library.root)}
                replace_file(folder / f"{library.record}{SUFFIX}", pack_tables(record))
                sys.stderr.write(f"{library.record}: {len(found)} releases\n")
    write_index(Path(find_folder()))
    refuse(unread, "what is recorded of their libraries")


def write_index(folder: Path) -> None:
    """Write the index of all libraries that have a record."""
    records = [record for name in recorded_libraries(folder) if (record := load_record(folder, name))]
    owners = {
        record.library: {*record.keywords, *record.members, *record.names.get(record.root, ())}
        for record in records
    }
    replace_file(folder / "releases" / FOLDER / INDEX, pack_owners(owners))
    taken = {record.library: _arguments(record) for record in records if record.library in STACK}
    replace_file(folder / "releases" / FOLDER / ARGUMENTS, pack_owners(taken))
    asked = {record.library: _imports(record) for record in records}
    replace_file(folder / "releases" / FOLDER / IMPORTS, pack_owners(asked))


def _imports(record: Record) -> set[str]:
    """Return what the library imports from others in any release: modules, and names with theirs."""
    told = record.imports.items()
    return {import_key(module, name) for module, names in told for name in ("", *names)}


def _arguments(record: Record) -> set[str]:
    """Return the named arguments, of each method by its bare name, that not every release takes."""
    all_releases = [[0, len(record.versions) - 1]]
    return {
        argument_key(owner.rpartition(".")[2], name)
        for owner, told in record.keywords.items()
        for name, spans in told.items()
        if len(name) >= _TELLING and name.isidentifier() and spans and list(map(list, spans)) != all_releases
    }


if __name__ == "__main__":
    sys.exit(run_writer(main))
