"""The modules of one release, read from its wheel by ranges while someone waits, and kept.

What lies in a release never changes: what was read of it once serves for good. Of a release without a wheel
the sources of its sdist are read, where that is small.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envdoctor.errors import Unavailable
from envdoctor.fetch import Fetcher
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import IndexFile
from envdoctor.harvest.metadata import chosen_file
from envdoctor.harvest.module_imports import ModuleImports, imports_of, parse_kept
from envdoctor.harvest.remote_archive import RemoteZip, naming, read_sdist_members
from envdoctor.inputs import MEBIBYTE
from envdoctor.toml_text import parse_toml

SCHEMA = "envdoctor.modules/5"
WHOLE = 2 * MEBIBYTE
"""Wheels up to this many bytes are read whole: that takes no longer than their directory and some members."""
LARGEST_SDIST = 8 * MEBIBYTE
_CODE = re.compile(r"\.(?:py|(?:[\w-]+\.)?(?:so|pyd))$")
_COMPILED = re.compile(r"\.(?:[\w-]+\.)?(?:so|pyd)$")
_DATA = re.compile(r"^[^/]{1,120}\.data/(?:purelib|platlib)/")


@dataclass(slots=True)
class ReleaseModules:
    """What one release holds: `files` are its modules' files as they are installed, by where they lie in it.

    `told` is what was read of modules so far. Raises Unavailable where the release cannot be read.
    """

    name: str
    version: str
    files: Mapping[str, str]
    told: dict[str, ModuleImports | None]
    source: IndexFile | None = None
    build_asks: tuple[str, ...] = ()
    """What the build of an sdist asks for, as its `pyproject.toml` says."""
    _bodies: dict[str, bytes] = field(default_factory=dict)
    _remote: RemoteZip | None = None
    tops: frozenset[str] = field(init=False)
    """The names that can be imported of it."""
    _compiled: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Note the names that stand at the top: of an sdist's setup nothing is installed."""
        tops = (path.partition("/")[0] for path in self.files if path != "setup.py")
        self.tops = frozenset(top.partition(".")[0] for top in tops)
        self._compiled = frozenset(_COMPILED.sub("", path) for path in self.files if _COMPILED.search(path))

    def file_of(self, module: str) -> str:
        """Return the file of a module; "" for a folder without one, or a compiled one, or none.

        Beside its source a compiled one is what is imported (importlib looks for extensions first).
        """
        path = module.replace(".", "/")
        found = next((one for one in (f"{path}/__init__.py", f"{path}.py") if one in self.files), "")
        return "" if found.removesuffix(".py") in self._compiled else found

    def within(self, folder: str, end: str) -> Iterator[str]:
        """Yield the modules right within a folder whose names end so."""
        inside = re.compile(rf"{re.escape(folder.replace('.', '/'))}/(?!_)(\w*{re.escape(end)})\.py")
        yield from (f"{folder}.{found[1]}" for path in self.files if (found := inside.fullmatch(path)))

    def copies_of(self, root: str) -> Iterator[str]:
        """Yield the files of modules of that name within its folders, compiled ones too."""
        inside = re.compile(rf"/{re.escape(root)}(?:/__init__\.py|\.py|\.(?:[\w-]+\.)?(?:so|pyd))$")
        return filter(inside.search, self.files)

    def has(self, module: str) -> bool:
        """True for a module of it: a file, a compiled one, or a folder of modules."""
        path = module.replace(".", "/")
        return bool(self.file_of(module)) or any(
            one.startswith((f"{path}/", f"{path}.")) for one in self.files
        )

    def read(self, modules: Collection[str], fetcher: Fetcher) -> None:
        """Read files of modules, near ones at once; raises Unavailable."""
        wanted = {
            path: module for module in modules if module not in self.told and (path := self.file_of(module))
        }
        if not wanted or self.source is None:
            return
        with naming(self.source.filename):
            for path, body in self._read(wanted, fetcher):
                module = wanted[path]
                self.told[module] = imports_of(module, path.endswith("/__init__.py"), body)

    def _read(self, paths: Iterable[str], fetcher: Fetcher) -> Iterable[tuple[str, bytes]]:
        if self._bodies:
            return [(path, self._bodies[path]) for path in paths]
        assert self.source is not None  # asked by `read`
        self._remote = self._remote or RemoteZip(fetcher, self.source.url)
        installed = {self.files[path]: path for path in paths}
        return ((installed[name], body) for name, body in self._remote.read_many(list(installed)))

    def as_json(self) -> str:
        """Return what is kept."""
        told = {module: one and one.as_json() for module, one in self.told.items()}
        whole = {"schema": SCHEMA, "files": dict(self.files), "told": told, "build": self.build_asks}
        return json.dumps(whole, separators=(",", ":"))


def open_release(fetcher: Fetcher, name: str, version: str, files: Iterable[IndexFile]) -> ReleaseModules:
    """Return a release whose files the index lists, with its directory; raises Unavailable."""
    usable = [file for file in files if not file.yanked] or list(files)
    file = chosen_file(usable)
    if file is None:
        raise Unavailable(f"{name} {version} has no file for Python 3")
    with naming(file.filename):
        if not file.is_wheel:
            return _opened_sdist(fetcher, name, version, file)
        if (file.size or WHOLE + 1) > WHOLE:
            remote = RemoteZip(fetcher, file.url)
            return ReleaseModules(name, version, _installed(remote.members), {}, file, (), {}, remote)
        archive = zipfile.ZipFile(io.BytesIO(fetcher.get(file.url, cap=2 * WHOLE).body))
        listed = _installed(archive.namelist())
        bodies = {path: archive.read(inside) for path, inside in listed.items() if path.endswith(".py")}
        return ReleaseModules(name, version, listed, {}, file, (), bodies)


def _opened_sdist(fetcher: Fetcher, name: str, version: str, file: IndexFile) -> ReleaseModules:
    if (file.size or LARGEST_SDIST + 1) > LARGEST_SDIST:
        raise Unavailable(f"{file.filename} is too large to be read for its modules")
    found = read_sdist_members(
        fetcher, file.url, lambda one: one.endswith(".py") or _is_project(one), lambda _: False
    )
    told = next((body for one, body in found.items() if _is_project(one)), b"")
    bodies = {
        re.sub(r"^(?:src|lib|python)/", "", one.partition("/")[2]): body
        for one, body in found.items()
        if one.endswith(".py")
    }
    return ReleaseModules(name, version, {p: p for p in bodies}, {}, file, _build_asks(told), bodies)


def _is_project(path: str) -> bool:
    return path.count("/") == 1 and path.endswith("/pyproject.toml")


def _build_asks(project: bytes) -> tuple[str, ...]:
    try:
        asked = parse_toml(project.decode("utf-8", "replace")).get("build-system", {}).get("requires", [])
    except (ValueError, AttributeError):
        return ()
    return tuple(one for one in asked if isinstance(one, str)) if isinstance(asked, list) else ()


def _installed(names: Iterable[str]) -> dict[str, str]:
    return {_DATA.sub("", name): name for name in names if _CODE.search(name)}


@dataclass(frozen=True, slots=True)
class KeptModules:
    """The folder in which releases' modules are kept."""

    folder: Path

    def read(self, name: str, version: str) -> ReleaseModules | None:
        """Return what was kept of a release; None for nothing, or what is damaged."""
        try:
            document = json.loads(zlib.decompress(self._path(name, version).read_bytes()))
            if document["schema"] != SCHEMA:
                return None
            told = {module: one and parse_kept(one) for module, one in document["told"].items()}
            return ReleaseModules(name, version, document["files"], told, None, tuple(document["build"]))
        except (OSError, ValueError, TypeError, KeyError, zlib.error):
            return None

    def write(self, release: ReleaseModules) -> None:
        """Keep what was read of a release; a folder that cannot be written only costs the next time."""
        path = self._path(release.name, release.version)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, zlib.compress(release.as_json().encode(), 1))
        except (Unavailable, OSError):
            pass

    def _path(self, name: str, version: str) -> Path:
        return self.folder / f"{name}-{version}.json.z"
