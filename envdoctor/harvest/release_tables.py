"""The generated part of the matrix: `matrices/releases/*.json`, made from a package store.

Each file: `schema`, `family`, `generated` (the newest date in the store that it was made from), `command`,
and `releases` by version, whose `source` names the file that the facts were read from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envdoctor.harvest.closure import CORE
from envdoctor.harvest.seed import SOURCE
from envdoctor.harvest.store import Record
from envdoctor.matrix.snapshot import parse_manylinux

SCHEMA = "envdoctor.releases/1"
COMMAND = "envdoctor matrix update --store DIR --releases matrices/releases"
PINNED = ("sglang", "torchaudio", "torchvision", "vllm", "xformers")
_LINUX = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "extra": "",
}
_PYTHONS = tuple({"python_version": v, "python_full_version": f"{v}.0"} for v in ("3.10", "3.12"))
_CPYTHON_LINUX = re.compile(r"-cp3(\d+)-cp3\d+m?-[^-]*linux")
_MACHINES = {"any": "any", "x86_64": "x86_64", "aarch64": "aarch64", "win_amd64": "windows"}
_MACS = {"arm64": "macos", "universal2": "macos"}
"""For what machine a wheel is, by how its platform tag ends."""
LARGE = 20 << 20
"""Bytes: packages of the stack, and others with a file of that size, have theirs on record."""


def release_tables(
    records: Iterable[Record], former: Callable[[str], Mapping[str, Any]] = lambda name: {}
) -> dict[str, str]:
    """Return by family the text of every table whose package is among the records, which are read once.

    `former` gives the tables in force: their releases stay where the store has no facts of its own.
    """
    tables: dict[str, str] = {}
    pinned: list[tuple[Record, dict[str, Any]]] = []
    sized: dict[str, dict[str, dict[str, int]]] = {}
    sized_on = ""
    for record in records:
        name = record["name"]
        if name in _FAMILIES:
            releases = {**former(name).get("releases", {}), **_FAMILIES[name](record)}
            tables[name] = _table(name, record, releases)
        if name in PINNED:
            pinned.append(({"fetched": record["fetched"]}, {name: pin_table(record)}))
        if table := size_table(record):
            sized[name], sized_on = table, max(sized_on, str(record["fetched"]))
    if pinned:
        newest = max((made_from for made_from, _ in pinned), key=lambda one: str(one["fetched"]))
        tables["pins"] = _table("pins", newest, {n: table for _, told in pinned for n, table in told.items()})
    if sized:
        sizes = {**former("sizes").get("releases", {}), **sized}
        tables["sizes"] = _table("sizes", {"fetched": sized_on}, sizes)
    return tables


def _table(family: str, made_from: Record, releases: Mapping[str, Any]) -> str:
    generated = str(made_from["fetched"])
    head = {"schema": SCHEMA, "family": family, "generated": generated, "command": COMMAND}
    lines = [f"{json.dumps(v)}: {json.dumps(facts, separators=(',', ':'))}" for v, facts in releases.items()]
    return json.dumps(head)[:-1] + ', "releases": {\n' + ",\n".join(lines) + "\n}}\n"


def _deep_releases(record: Record) -> Iterator[tuple[str, Record, dict[str, Any]]]:
    for version in sorted(record["releases"], key=Version):
        release = record["releases"][version]
        deep = release.get("deep")
        if deep and "reason" not in deep and deep.get("source") != SOURCE:
            yield version, release, deep


def _day(release: Record) -> str | None:
    return min((f["uploaded"][:10] for f in release["files"] if f["uploaded"]), default=None)


def torch_table(record: Record) -> dict[str, Any]:
    """Return by torch version what its default wheels were built for and pin."""
    table = {}
    for version, release, deep in _deep_releases(record):
        platforms = {arch: facts for arch, facts in deep["platforms"].items() if "reason" not in facts}
        if platforms:
            main = platforms.get("x86_64") or next(iter(platforms.values()))
            table[version] = {
                "date": _day(release),
                **main,
                **_torch_pins(release["requires"] or ()),
                "requires_python": next((f["requires_python"] for f in release["files"]), None),
                "pythons": _pythons(release["files"]),
                "glibc": _glibc(main["source"]),
                "platforms": platforms,
            }
    return table


def _torch_pins(lines: Iterable[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {"cudnn": None, "nccl": None, "triton": None, "cuda_toolkit": None}
    for requirement in map(Requirement, lines):
        match = re.fullmatch(
            r"nvidia-(cudnn|nccl)-cu\d+|(triton|pytorch-triton)|(cuda-toolkit)", requirement.name
        )
        if match and _on_linux(requirement):
            key = match.group(1) or ("triton" if match.group(2) else "cuda_toolkit")
            found[key] = str(requirement.specifier).removeprefix("==")
    return found


def _on_linux(requirement: Requirement) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**_LINUX, **python}) for python in _PYTHONS)


def _pythons(files: Iterable[Mapping[str, Any]]) -> list[str]:
    minors = {int(m.group(1)) for f in files if (m := _CPYTHON_LINUX.search(f["filename"]))}
    return [f"3.{minor}" for minor in sorted(minors)]


def _glibc(filename: str) -> str | None:
    tags = filename.removesuffix(".whl").rpartition("-")[2].split(".")
    asked = next(filter(None, map(parse_manylinux, tags)), None)
    return ".".join(map(str, asked[0])) if asked else None


def bitsandbytes_table(record: Record) -> dict[str, Any]:
    """Return by bitsandbytes version the libraries that its Linux wheels carry."""
    table = {}
    for version, release, deep in _deep_releases(record):
        platforms = {arch: facts for arch, facts in deep["platforms"].items() if "reason" not in facts}
        if platforms:
            main = platforms.get("x86_64") or next(iter(platforms.values()))
            table[version] = {"date": _day(release), **main, "platforms": platforms}
    return table


def transformers_table(record: Record) -> dict[str, Any]:
    """Return by transformers version its run-time minimums, and what its extras declare of the stack."""
    table = {}
    for version, release, deep in _deep_releases(record):
        declared = {
            name: specifier
            for name, specifier in deep["declared"].items()
            if specifier and canonicalize_name(name) in CORE and deep["requires"].get(name) != specifier
        }
        table[version] = {"date": _day(release), **deep, "declared": declared}
    return table


def plain_table(record: Record) -> dict[str, Any]:
    """Return a family's deep facts as they are."""
    return {v: {"date": _day(release), **deep} for v, release, deep in _deep_releases(record)}


def pin_table(record: Record) -> dict[str, dict[str, str]]:
    """Return by version what a package's metadata requires of the stack on x86_64 Linux, without extras."""
    releases = record["releases"]
    pins = {
        v: dict(_stack_requirements(releases[v].get("requires") or ())) for v in sorted(releases, key=Version)
    }
    return {version: pinned for version, pinned in pins.items() if pinned}


def _stack_requirements(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for requirement in map(Requirement, lines):
        name = str(canonicalize_name(requirement.name))
        if name in CORE and _on_linux(requirement):
            yield name, str(requirement.specifier)


def size_table(record: Record) -> dict[str, dict[str, int]]:
    """Return by version the bytes of the largest wheel for a kind of machine, or of the source without any.

    Empty for a package whose files are all small, and that is not of the stack itself.
    """
    releases = record["releases"]
    told = {v: _sizes(releases[v]["files"]) for v in sorted(releases, key=Version)}
    largest = max((size for sizes in told.values() for size in sizes.values()), default=0)
    if record["name"] not in CORE and largest < LARGE:
        return {}
    return {version: sizes for version, sizes in told.items() if sizes}


def _sizes(files: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    offered = [(f["filename"].lower(), f.get("size") or 0) for f in files if not f["yanked"]]
    wheels = [(_machine(name), size) for name, size in offered if name.endswith(".whl")]
    if not wheels:
        sources = [size for name, size in offered if size and name.endswith(".tar.gz")]
        return {"source": max(sources)} if sources else {}
    found: dict[str, int] = {}
    for machine, size in wheels:
        if machine and size:
            found[machine] = max(size, found.get(machine, 0))
    return found


def _machine(wheel: str) -> str | None:
    return _machine_of(*wheel.removesuffix(".whl").split("-")[-3::2])


@lru_cache(4096)
def _machine_of(python: str, platform: str) -> str | None:
    """Return for what machine a wheel of CPython 3 is; None for other Pythons and machines."""
    if not any(one.startswith(("py3", "cp3")) for one in python.split(".")):
        return None
    kinds = _MACS if "macosx" in platform else _MACHINES
    return next((kind for end, kind in kinds.items() if platform.endswith(end)), None)


_FAMILIES: Mapping[str, Callable[[Record], dict[str, Any]]] = {
    "torch": torch_table,
    "bitsandbytes": bitsandbytes_table,
    "transformers": transformers_table,
    "xformers": plain_table,
    "deepspeed": plain_table,
}
