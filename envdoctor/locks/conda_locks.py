"""`pixi.lock` and `conda-lock.yml`: the default environment on Linux, conda's and the index's packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from envdoctor import lazy_re as re
from envdoctor.facts.names import normalise
from envdoctor.locks.values import Lock, Locked, Unreadable, header_lines, table_of, tables_of, text_of

WANTED = ("linux-64", "linux-aarch64")
"""Platforms in the order in which they are looked for; else the first that the lock names."""
_ENDS = (".conda", ".tar.bz2")
_KINDS = ("conda", "pypi", "conda_source", "url", "path")
_SOURCE = re.compile(r"([^\[\s]+)(?:\[\w*\])? @ (.+)")
"""What pixi builds of the project's own: `name[hash] @ folder`, since version 7 of its lock."""


def read_pixi(document: Mapping[str, Any], text: str) -> Lock:
    """Return the packages of pixi's environment `default`, else the first that has any; raises Unreadable."""
    if "environments" not in document:
        return _lock("pixi.lock", _of_platform(document, text), document)
    environments = table_of(document.get("environments"))
    packages = {name: table_of(table_of(one).get("packages")) for name, one in environments.items()}
    filled = [name for name, held in packages.items() if held]  # a default one may hold nothing
    chosen = "default" if "default" in filled else next(iter(filled), "default")
    by_platform = packages.get(chosen) or dict.fromkeys(WANTED[:1])
    platform = _platform(by_platform)
    listed = {_place(one): (one, line) for one, line in _with_lines(document.get("packages"), text)}
    entries = [listed.get(_place(one), (one, 0)) for one in tables_of(by_platform.get(platform))]
    note = (f"of its environments only {chosen!r} is read",) if len(environments) > 1 else ()
    return _told("pixi.lock", [_pixi_locked(one, line) for one, line in entries], platform, note)


def _place(entry: Mapping[str, Any]) -> str:
    return next((text_of(entry[kind]) for kind in _KINDS if entry.get(kind)), "")


def _pixi_locked(entry: Mapping[str, Any], line: int) -> Locked:
    place, name, version = _place(entry), text_of(entry.get("name")), text_of(entry.get("version"))
    if "pypi" in entry or entry.get("kind") == "pypi":
        origin = "vcs" if place.startswith("git+") else None if "://" in place else "file"
        name, version = (name, version) if name else _of_wheel(place)
        return Locked(normalise(name), version or None, line, origin, bool(entry.get("editable")))
    if built := _SOURCE.fullmatch(text_of(entry.get("conda_source"))):
        origin = "vcs" if built[2].startswith("git+") else "file"
        return Locked(normalise(built[1]), version or None, line, origin)
    source = bool(name) and not place.endswith(_ENDS)
    told = ("", "", "") if source else _of_conda_file(place)
    build, origin = text_of(entry.get("build")) or told[2], "file" if source else "conda"
    version = told[1] or version  # a file's name is text where YAML takes `1.3_31` for a number
    return Locked(normalise(name or told[0]), version or None, line, origin, build=build)


def _of_wheel(place: str) -> tuple[str, str]:
    name, _, rest = place.rpartition("/")[2].partition("-")
    return name, rest.partition("-")[0]


def _of_conda_file(place: str) -> tuple[str, str, str]:
    file = place.rpartition("/")[2]
    stem = next((file[: -len(end)] for end in _ENDS if file.endswith(end)), file)
    parts = stem.rsplit("-", 2)
    if len(parts) != 3:
        raise Unreadable(f"{file[:80]!r} is no package file of conda")
    return parts[0], parts[1], parts[2]


def read_conda_lock(document: Mapping[str, Any], text: str) -> Lock:
    """Return the packages of conda-lock's `main` category on one platform; raises Unreadable."""
    return _lock("conda-lock.yml", _of_platform(document, text), document)


def _of_platform(document: Mapping[str, Any], text: str) -> tuple[str, list[tuple[Mapping[str, Any], int]]]:
    entries = _with_lines(document.get("package"), text)
    platform = _platform({text_of(one.get("platform")): None for one, _ in entries})
    return platform, [
        (one, line) for one, line in entries if one.get("platform") == platform and _of_main(one)
    ]


def _of_main(entry: Mapping[str, Any]) -> bool:
    told = entry.get("categories")
    return "main" in told if isinstance(told, list) else entry.get("category", "main") == "main"


def _lock(
    kind: str, found: tuple[str, list[tuple[Mapping[str, Any], int]]], document: Mapping[str, Any]
) -> Lock:
    platform, entries = found
    return _told(kind, [_managed(one, line) for one, line in entries], platform, ())


def _managed(entry: Mapping[str, Any], line: int) -> Locked:
    name, version = text_of(entry.get("name")), text_of(entry.get("version")) or None
    if not name:
        raise Unreadable(f"line {line}: a package has no name")
    if entry.get("manager") == "pip":
        return Locked(normalise(name), version, line)
    told = _of_conda_file(place) if (place := text_of(entry.get("url"))) else ("", "", "")
    return Locked(normalise(name), version, line, "conda", build=text_of(entry.get("build")) or told[2])


def _told(kind: str, packages: Iterable[Locked], platform: str, notes: tuple[str, ...]) -> Lock:
    found = tuple(packages)
    python = next((one.version for one in found if one.name == "python" and one.origin == "conda"), None)
    return Lock(kind, found, f"the platform {platform}", True, python, platform, notes)


def _platform(named: Mapping[str, Any]) -> str:
    found = next((one for one in (*WANTED, *named) if one in named), "")
    if not found:
        raise Unreadable("names no platform")
    return found


def _with_lines(entries: object, text: str) -> list[tuple[Mapping[str, Any], int]]:
    tables = tables_of(entries)
    lines = header_lines(text, "-")[-len(tables) :] if tables else []
    lines += [0] * (len(tables) - len(lines))
    return [*zip(tables, lines, strict=True)]
