"""The recorded interfaces of libraries: one packed file each, unpacked when an error asks for it."""

from __future__ import annotations

import json
import os
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache

from packaging.version import Version

from envdoctor.fact_files import Folder, read_file
from envdoctor.matrix.interface_ranges import places_of, spans_of
from envdoctor.matrix.late_tables import PLAIN, read_head, read_tables
from envdoctor.values import dataclass

FOLDER = "interfaces"
SUFFIX = ".tables"
INDEX, ARGUMENTS, IMPORTS = "owners.bin", "arguments.bin", "imports.bin"
PART, MODELS = "+", "models"
"""Between a library's name and the part of it that a record of its own tells of; of its models' classes."""
_NUMBER = 0x7F
Spans = Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class Record:
    """What is recorded of one library: `spans` are first and last places among `versions`."""

    library: str
    root: str
    """The name that is imported."""
    versions: Sequence[str]
    modules: Mapping[str, Spans]
    names: Mapping[str, Mapping[str, Spans]]
    """By module; what all releases have is left out, here as in all others.

    `__getattr__` stands where it may bring more than is told.
    """
    keywords: Mapping[str, Mapping[str, Spans]]
    """By callable: its arguments, `~N` where it takes at most N by position, `!name` where one is needed.

    `**` takes any; under "" stand the callable's own releases where it is not in all.
    """
    members: Mapping[str, Mapping[str, Spans]]
    """By class, inherited ones included; `=name` is a property that cannot be set."""
    imports: Mapping[str, Mapping[str, Spans]]
    """By module of another package: what is imported from it without a guard."""
    passed: Mapping[str, Mapping[str, Spans]]
    """By method: what the library itself gives it when it calls it on `self`; `~N` arguments by position."""
    bases: Mapping[str, Mapping[str, Spans]]
    """By class: those of the package that it derives from by itself, in all releases too."""
    variables: Mapping[str, Spans]
    """The environment variables that the library asks for."""
    stays: Mapping[str, Mapping[str, Spans]] = field(default_factory=dict)
    """When any class has what ends at one, where classes that are left out have it longer.

    Members under "", arguments under their method's name.
    """
    served: Mapping[str, Mapping[str, Spans]] = field(default_factory=dict)
    """By module: when it only passes a name on, that it has by itself in other releases."""

    @cache  # noqa: B019  (records are kept for as long as the process runs)
    def place(self, version: Version) -> int:
        """Return the place of the newest recorded release that is no newer than `version`, else the first."""
        told = Version(version.base_version) if version.is_prerelease or version.is_devrelease else version
        return max(sum(1 for known in self.versions if Version(known) <= told) - 1, 0)

    def knows(self, version: Version) -> bool:
        """False for a release from before the first that was read."""
        return version >= Version(self.versions[0])

    def has(self, spans: Spans, version: Version) -> bool:
        """True when `version` lies in one of the spans."""
        place = self.place(version)
        for first, last in spans:  # noqa: SIM110  (a generator takes twice as long, and uses ask often)
            if first <= place <= last:
                return True
        return False

    def others(self, spans: Spans) -> list[list[int]]:
        """Return the releases outside of the spans, as spans."""
        inside = set(places_of(spans))
        return spans_of(place for place in range(len(self.versions)) if place not in inside)


def ancestors(bases: Mapping[str, Iterable[str]], name: str) -> list[str]:
    """Return the classes of the package that a class derives from, the nearest first."""
    found = [name]
    for one in found:
        found += [base for base in bases.get(one, ()) if base not in found]
    return found[1:]


@cache
def load_record(folder: Folder, library: str) -> Record | None:
    """Return what is recorded of a library in a matrix folder, or None."""
    try:
        return Record(**read_tables(_read(folder, library)))
    except (OSError, ValueError, TypeError):
        return None


def recorded_versions(folder: Folder, library: str) -> tuple[str, ...]:
    """Return the releases of which a library's record tells, without reading what it tells of them."""
    try:
        return tuple(read_head(_read(folder, library))[0][PLAIN]["versions"])
    except (OSError, ValueError):
        return ()


def _read(folder: Folder, library: str) -> bytes:
    return read_file(os.path.join(folder, "releases", FOLDER, f"{library}{SUFFIX}"))


@cache
def recorded_libraries(folder: Folder) -> tuple[str, ...]:
    """Return the libraries that have a record, sorted."""
    try:
        names = os.listdir(os.path.join(folder, "releases", FOLDER))
    except OSError:
        return ()
    libraries = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return tuple(sorted(name for name in libraries if PART not in name))


def pack_owners(owners: Mapping[str, Iterable[str]]) -> bytes:
    """Return an index from the callables and classes of each library (by name) to the library."""
    names = sorted(owners)
    rows = sorted({_key(owner) | number for number, name in enumerate(names) for owner in owners[name]})
    head = json.dumps(names).encode()
    return struct.pack("<I", len(head)) + head + struct.pack(f"<{len(rows)}I", *rows)


def _key(owner: str) -> int:
    return zlib.crc32(owner.encode("utf-8", "replace")) & ~_NUMBER


def libraries_with(folder: Folder, owner: str) -> tuple[str, ...]:
    """Return the libraries that may have a callable or class of that name whose interface changed."""
    return _indexed(folder, INDEX, owner)


def libraries_taking(folder: Folder, method: str, argument: str) -> tuple[str, ...]:
    """Return the libraries some method of which, by its bare name, may take the argument in some releases."""
    return _indexed(folder, ARGUMENTS, argument_key(method, argument))


def libraries_importing(folder: Folder, module: str, name: str) -> tuple[str, ...]:
    """Return the libraries that may import a name (any, where it is empty) of a module in some releases."""
    return _indexed(folder, IMPORTS, import_key(module, name))


def import_key(module: str, name: str) -> str:
    """Return how the index of imports calls a name that is imported from a module."""
    return f"{module}:{name}"


def argument_key(method: str, argument: str) -> str:
    """Return how the index of arguments calls one of a method's."""
    return f"{method}({argument}"


@cache
def _indexed(folder: Folder, index: str, told: str) -> tuple[str, ...]:
    names, rows = _index(folder, index)
    key = _key(told)
    start = bisect_left(rows, key)
    end = bisect_left(rows, key | _NUMBER, start)
    return tuple(names[row & _NUMBER] for row in rows[start : end + 1] if row & ~_NUMBER == key)


@cache
def _index(folder: Folder, index: str) -> tuple[Sequence[str], Sequence[int]]:
    try:
        data = read_file(os.path.join(folder, "releases", FOLDER, index))
        (size,) = struct.unpack_from("<I", data)
        names = json.loads(data[4 : 4 + size])
        return names, struct.unpack(f"<{(len(data) - 4 - size) // 4}I", data[4 + size :])
    except (OSError, ValueError, struct.error):
        return (), ()
