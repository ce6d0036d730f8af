"""Reads which keys the settings of each framework's releases take, from the index.

    python gathering/config_fields.py [FRAMEWORK]...

writes `matrices/releases/fields/<framework>.json`: `versions`, the final releases that were read; `fields`,
for each key the ranges of them, as positions in that list, that take it, `section.key` where all keys of a
section are known; `trainers`, the same for each class of which a run takes one beside them; `outside`, for
inherited classes of other packages whose keys are not known here; `unread`, the releases that could not be
read, with the reason. Pre-releases are not read.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from frameworks import FRAMEWORKS, KNOWN, Framework
from packaging.version import Version
from release_sources import Sources, best_file, read_sources
from settings_classes import Class, Keys, Outside, Package
from settings_syntax import Unparsable, constants, options

from envdoctor.errors import Unavailable
from envdoctor.fact_files import find_folder
from envdoctor.fetch import Fetcher, FetchSettings
from envdoctor.files import replace_file
from envdoctor.harvest.index_pages import IndexFile, read_project_page

SCHEMA = "envdoctor.fields/2"
CONNECTIONS = 6


@dataclass(frozen=True, slots=True)
class Release:
    """What one release takes: its keys, and those of each trainer by class."""

    keys: Keys
    trainers: Mapping[str, Keys] = field(default_factory=dict)


def read_keys(sources: Sources, framework: Framework) -> Release:
    """Return the keys that a release of a framework takes; raises Unparsable and Unavailable."""
    package = Package(sources)
    found = Keys()
    for path in sorted(sources.paths):
        for part in _of_file(package, path, framework):
            found = found | part
    paths = frozenset(p.rpartition(".")[2] for p in found.paths) if framework.flat else found.paths
    keys = Keys(paths, frozenset(filter(_is_unknown, found.outside)), found.free)
    trainers = {
        c.node.name: package.keys(c)
        for path in sorted(sources.paths)
        for c in _classes(package, path, framework.trainers)
    }
    return Release(keys, trainers)


def _of_file(package: Package, path: str, framework: Framework) -> Iterator[Keys]:
    yield from (package.keys(found) for found in _classes(package, path, framework.classes))
    for patterns, names in ((framework.parsers, options), (framework.words, constants)):
        if _among(path, patterns) and (module := package.module(module_name(path))):
            yield Keys(frozenset(names(module.tree)))


def _classes(package: Package, path: str, pairs: Iterable[tuple[str, str]]) -> Iterator[Class]:
    patterns = [name for file, name in pairs if fnmatch.fnmatchcase(path, file)]
    module = package.module(module_name(path)) if patterns else None
    for name, bindings in module.bindings.items() if module else ():
        if _among(name, patterns):
            yield from (Class(module, node) for node in bindings if isinstance(node, ast.ClassDef) if module)


def module_name(path: str) -> str:
    """Return `a.b` for `a/b.py` and for `a/b/__init__.py`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _among(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _is_unknown(base: Outside) -> bool:
    return not _among(base.name, KNOWN.get(base.package, ()))


def read_framework(
    fetcher: Fetcher, index: str, framework: Framework
) -> tuple[dict[str, Release], dict[str, str]]:
    """Return the keys of every final release by version, and why others were not read; raises Unavailable."""
    page = read_project_page(fetcher, index, framework.name)
    releases = page.releases() if page else {}
    chosen = [v for v in releases if _counts(Version(v), framework)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        results = list(pool.map(lambda v: _read_release(fetcher, releases[v], framework), chosen))
    found = dict(zip(chosen, results, strict=True))
    return (
        {v: keys for v, keys in found.items() if isinstance(keys, Release)},
        {v: reason for v, reason in found.items() if isinstance(reason, str)},
    )


def _counts(version: Version, framework: Framework) -> bool:
    return not version.is_prerelease and version >= Version(framework.since)


def _read_release(fetcher: Fetcher, files: Sequence[IndexFile], framework: Framework) -> Release | str:
    """Return what a release takes, or why that is not known."""
    file = best_file(files)
    try:
        found = read_keys(read_sources(fetcher, file), framework) if file else Release(Keys())
    except (Unavailable, Unparsable) as problem:
        return str(problem)
    if found.keys.free:
        return "a settings class takes any key"
    return found if found.keys.paths else "no settings class was found in it"


def encode_fields(found: Mapping[str, Release]) -> dict[str, object]:
    """Return releases in order and, for each key and each unknown base, the ranges that have it."""
    versions = sorted(found, key=Version)
    releases = [found[v] for v in versions]
    trainers = sorted({name for release in releases for name in release.trainers})
    return {
        "versions": versions,
        "fields": _ranges(release.keys.paths for release in releases),
        "outside": _ranges(map(str, release.keys.outside) for release in releases),
        "trainers": {
            name: _ranges(release.trainers.get(name, Keys()).paths for release in releases)
            for name in trainers
        },
    }


def _ranges(names: Iterable[Iterable[str]]) -> dict[str, list[list[int]]]:
    """Return for each name the ranges `[first, last]` of positions that have it."""
    present: dict[str, list[list[int]]] = {}
    for position, had in enumerate(names):
        for name in sorted(set(had)):
            ranges = present.setdefault(name, [])
            if ranges and ranges[-1][1] == position - 1:
                ranges[-1][1] = position
            else:
                ranges.append([position, position])
    return present


def main(names: Sequence[str]) -> None:
    """Read the named frameworks (all when none is named) and write their generated files."""
    from envdoctor.harvest.index_settings import read_index_settings

    settings = read_index_settings()
    folder = Path(find_folder(), "releases", "fields")
    folder.mkdir(parents=True, exist_ok=True)
    patience = FetchSettings(
        connections=CONNECTIONS, certificates=settings.certificates, proxy=settings.proxy
    )
    with Fetcher(patience) as fetcher:
        for framework in FRAMEWORKS:
            if not names or framework.name in names:
                _write(*read_framework(fetcher, settings.url, framework), framework, folder)


def _write(
    found: Mapping[str, Release], unread: Mapping[str, str], framework: Framework, folder: Path
) -> None:
    head = {
        "schema": SCHEMA,
        "framework": framework.name,
        "flat": framework.flat,
        "usual": framework.usual,
        "made_by": "python gathering/config_fields.py",
    }
    data = {**head, **encode_fields(found), "unread": unread}
    text = json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n"
    replace_file(folder / f"{framework.name}.json", text)


if __name__ == "__main__":
    main(sys.argv[1:])
