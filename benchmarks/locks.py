"""Locks read by us and by the tool that wrote them: `python benchmarks/locks.py FOLDER [--only KIND]`.

FOLDER holds a folder for each lock: the lock, and beside it the pyproject.toml (those of a workspace's
members as well) or Pipfile of its project. Both readings are of the packages on Linux (x86_64), with the
project's own requirements, for the Python that our reader names; a difference is printed. `uv` runs the
tools, each in an environment that it keeps. Local projects are left out of both readings. poetry's export
takes what another group makes no longer optional, and drops what an extra of an extra asks for: where it
reads otherwise, what poetry would install is asked.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envdoctor.errors import InputError
from envdoctor.locks.reading import read_lock
from envdoctor.locks.values import Markers

Reading = dict[str, set[str]]
"""Versions by normalised name; none where the lock names a place."""

ZEROS = re.compile(r"(?<![\w.])0+(?=\d)|(?<=\.)0+(?=\d)")
"""py-rattler writes `2025.09` as `2025.9`: the same version."""
NAMES = re.compile(r"(uv|poetry|pdm|pixi|Pipfile)\.lock|.*conda-lock\.ya?ml|pylock(\..+)?\.toml")
UV = ("uv", "export", "--frozen", "--no-default-groups", "--no-hashes", "--no-header", "--no-annotate")
EXPORTS = {
    "uv.lock": (*UV, "--no-emit-local"),
    "poetry.lock": (
        "uvx", "--python", "3.11", "--with", "poetry-plugin-export", "poetry", "export", "--without-hashes",
        "--only", "main",
    ),
    "pdm.lock": ("uvx", "--python", "3.11", "pdm", "export", "--prod", "--without-hashes", "--no-extras"),
    "Pipfile.lock": ("uvx", "--python", "3.11", "pipenv", "requirements"),
}  # fmt: skip
INSTALLS = ("poetry", "install", "--dry-run", "--no-root", "--no-interaction", "--no-ansi", "--only", "main")
INSTALLED = re.compile(
    r"^ *- (?:Installing|Updating|Downgrading) (\S+) \((?:\S+ -> )?([^ )]+)[^)]*\)(?!.*: Not required)",
    re.MULTILINE,
)
WITH = ("uv", "run", "--no-project", "--python", "3.11", "--with")
PIXI = """
import json, rattler, sys
lock = rattler.LockFile.from_path(sys.argv[1])
where = lock.environment("default") or lock.environments()[0][1]
platforms = {str(one): one for one in where.platforms()}
chosen = next(platforms[one] for one in ("linux-64", "linux-aarch64", *platforms) if one in platforms)
kept = [one for one in where.packages(chosen) if "://" in str(one.location)]
print(json.dumps([[one.name, str(one.version or "")] for one in kept]))
"""
CONDA = """
import json, pathlib, sys
from conda_lock.lockfile import parse_conda_lock_file
found = parse_conda_lock_file(pathlib.Path(sys.argv[1])).package
platforms = {one.platform for one in found}
chosen = next(one for one in ("linux-64", "linux-aarch64", *platforms) if one in platforms)
here = [one for one in found if one.platform == chosen]
kept = [one for one in here if "main" in (one.categories if hasattr(one, "categories") else [one.category])]
print(json.dumps([[one.name, one.version] for one in kept]))
"""
PYLOCK = """
import json, sys, tomllib
from packaging.pylock import Pylock
from packaging.tags import Tag, cpython_tags, compatible_tags
from packaging.markers import default_environment
minor = int(sys.argv[2])
here = {**default_environment(), "python_version": f"3.{minor}", "python_full_version": f"3.{minor}.99"}
machines = [f"manylinux_2_{glibc}_x86_64" for glibc in range(40, 4, -1)]
machines += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
tags = [*cpython_tags((3, minor), platforms=machines), *compatible_tags((3, minor), f"cp3{minor}", machines)]
lock = Pylock.from_dict(tomllib.load(open(sys.argv[1], "rb")))
kept = [one for one, _ in lock.select(environment=here, tags=tags) if not one.directory]
print(json.dumps([[one.name, str(one.version or "")] for one in kept]))
"""
READERS = {
    "pixi.lock": (*WITH, "py-rattler", "python", "-c", PIXI),
    "conda-lock.yml": (*WITH, "conda-lock>=3", "python", "-c", CONDA),
    "pylock.toml": (*WITH, "packaging>=26", "python", "-c", PYLOCK),
}


class Refused(Exception):
    """A tool reads its own lock not."""


def kind_of(path: Path) -> str:
    """Return the kind of lock by a file's name."""
    return (
        "pylock.toml"
        if path.name.startswith("pylock")
        else "conda-lock.yml"
        if "conda-lock" in path.name
        else path.name
    )


def theirs(path: Path, minor: int) -> Reading:
    """Return what the lock's own tool reads; raises Refused."""
    kind = kind_of(path)
    if kind in READERS:
        told = json.loads(output([*READERS[kind], path.name, str(minor)], path.parent))
        return gathered((name, version) for name, version in told)
    return gathered(asked(output(EXPORTS[kind], path.parent), minor))


def installed_by_poetry(folder: Path, minor: int) -> Reading:
    """Return what `poetry install` of the main group would put in, on its Python; raises Refused."""
    told = output(["uvx", "--python", f"3.{minor}", *INSTALLS], folder)
    return gathered(iter(INSTALLED.findall(told)))


def output(command: list[str] | tuple[str, ...], folder: Path) -> str:
    """Return a command's output in a copy of a folder; raises Refused with its last line of error."""
    outside = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}  # poetry obeys it
    with tempfile.TemporaryDirectory() as copied:
        shutil.copytree(folder, copied, dirs_exist_ok=True)
        done = subprocess.run(command, cwd=copied, env=outside, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(" ".join(done.stderr.split())[-300:])
    return done.stdout


def asked(text: str, minor: int) -> Iterator[tuple[str, str]]:
    """Yield name and version of exported lines whose markers hold."""
    markers = Markers(f"==3.{minor}.*")
    for line in text.splitlines():
        words = line.split(" #")[0].strip()
        if not words or words.startswith(("#", "-", ".")):
            continue
        try:
            request = Requirement(words)
        except InvalidRequirement:
            print(f"not read: {words[:100]}")
            continue
        if "file:" not in (request.url or "") and markers.hold(str(request.marker or "")):
            exact = [one.version for one in request.specifier if one.operator in ("==", "===")]
            yield request.name, exact[0] if exact else ""


def gathered(pairs: Iterator[tuple[str, str]]) -> Reading:
    """Return versions by normalised name."""
    found: Reading = collections.defaultdict(set)
    for name, version in pairs:
        found[canonicalize_name(name)] |= {ZEROS.sub("", version)} - {""}
    return dict(found)


def differences(ours: Reading, others: Reading) -> list[str]:
    """Return a line for each name that one has alone, or with other versions."""
    alone = [f"only ours: {name}" for name in sorted(ours.keys() - others.keys())]
    alone += [f"only theirs: {name}" for name in sorted(others.keys() - ours.keys())]
    both = sorted(name for name in ours.keys() & others.keys() if ours[name] and others[name])
    return alone + [f"{name}: {ours[name]} {others[name]}" for name in both if ours[name] != others[name]]


def compared(path: Path) -> str:
    """Return `equal`, `refused`, `nobody` (neither reads it) or `other`; print why."""
    try:
        lock = read_lock(path)
    except InputError as error:
        lock, why = None, str(error)
    minor = int(re.findall(r"Python 3\.(\d+)", lock.read_for)[0]) if lock and "3." in lock.read_for else 11
    try:
        others = theirs(path, minor)
    except Refused as error:
        print(f"{path.parent.name}: its tool: {error}", flush=True)
        return "refused" if lock else "nobody"
    if lock is None:
        print(f"{path.parent.name}: {why}", flush=True)
        return "other"
    found = gathered((one.name, one.version or "") for one in lock.packages if one.origin != "file")
    told = differences(found, others)
    if told and path.name == "poetry.lock":
        try:
            told = differences(found, installed_by_poetry(path.parent, minor))
        except Refused as error:
            print(f"{path.parent.name}: its installer: {error}", flush=True)
    if told:
        print(f"{path.parent.name}: {len(found)} packages, {len(told)} otherwise: {'; '.join(told[:12])}")
    return "other" if told else "equal"


def main() -> None:
    """Print each difference and the sums by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    sums: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for path in sorted(args.folder.glob("*/*")):
        if NAMES.fullmatch(path.name) and args.only in kind_of(path):
            sums[kind_of(path)][compared(path)] += 1
    for kind, found in sums.items():
        print(f"{kind}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(found.items()))}")


if __name__ == "__main__":
    main()
