"""Measures the sets that `upgrade` proposes for upgrades of old projects, and installs some of them.

    python benchmarks/upgrade_sets.py CASES.jsonl.gz [--sample N] [--seed S] [--show]
        [--install K --pythons FOLDER]

The file is the one that `upgrades.py` reads; asked are upgrades that ended in a crash or a conflict, the
first N by a hash of the seed and their names. A set that is solved is installed into an environment of the
Python that the project ran in (FOLDER holds one folder a release), and what was upgraded is imported there,
with all that the set changes. Reads the package index.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from upgrades import Case, read_cases

import envdoctor
from envdoctor.errors import InputError
from envdoctor.facts.names import normalise
from envdoctor.solve.answer import PinSet

_LARGE = {"torch", "tensorflow", "tensorflow-gpu"}
_PYTHON = re.compile(r"python(3\.\d{1,2})")
_UV = (sys.executable, "-m", "uv")
OLD_SETUPTOOLS = "setuptools<58\n"
"""What projects of that time were built with: 58 dropped what many of their setup.py ask for."""
PATIENCE_S = 1200
"""For one installer: much of that time is built here, numpy and scipy among it."""
_NO_MODULES = frozenset(("wheel", "setuptools", "pip"))
_IMPORT = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"


def python_of(case: Case) -> str:
    """Return the Python of the case: a path's, 3.6 where its backport is, else 3.7, the benchmark's own."""
    match = _PYTHON.search(case.traceback)
    return match[1] if match else "3.6" if case.versions.get("dataclasses") == "0.8" else "3.7"


def propose(case: Case, folder: Path) -> PinSet:
    """Return the set for a case's upgrade, from its listing, of wheels where they do; raises InputError."""
    freeze = folder / "freeze.txt"
    freeze.write_text(case.freeze, encoding="utf-8")
    of_wheels = _proposed(case, freeze, allow_source=False)
    return of_wheels if of_wheels.status == "solved" else _proposed(case, freeze, allow_source=True)


def _proposed(case: Case, freeze: Path, *, allow_source: bool) -> PinSet:
    _, package, version = case.upgraded
    answer = envdoctor.upgrade(
        [f"{package}=={version}"],
        [],
        target=str(freeze),
        python_version=python_of(case),
        platform="x86_64-manylinux_2_35",
        allow_source=allow_source,
    )
    return answer.pins


def install(case: Case, pins: PinSet, pythons: Path, folder: Path) -> str:
    """Install a set and import what it is about; return what went wrong, or nothing.

    Installed by uv; what it refuses for old projects' metadata it installs as the pins stand, and the pip of
    that time adds what they lack.
    """
    release = next(iter(sorted(pythons.glob(f"{python_of(case)}.*"))), None)
    if release is None:
        return "no such Python here"
    place = folder / "env"
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    changed = {pin.name for pin in pins.pins if case.versions.get(pin.name) != pin.version}
    wanted = [f"{pin.name}=={pin.version}" for pin in pins.pins]
    (folder / "setuptools.txt").write_text(OLD_SETUPTOOLS)
    _run([*_UV, "venv", "-q", "--seed", "--python", str(release / "bin" / "python"), str(place)])
    uv = [*_UV, "pip", "install", "-q", "-b", str(folder / "setuptools.txt"), "--python", python]
    trouble = _run([*uv, *wanted])
    if trouble:
        _run([*uv, "--no-deps", *wanted])  # metadata that is no metadata bars it from solving alone
        numpy = [pin for pin in wanted if pin.startswith("numpy==")] or ["wheel"]
        trouble = next(filter(None, (_run([*pip, *some]) for some in (["pip<21.4"], numpy, wanted))), "")
    if trouble:
        return f"install: {trouble}"
    modules = [
        module
        for name in sorted((changed | {normalise(case.upgraded[1])}) - _NO_MODULES)
        for module in modules_of(name, place)
    ]
    done = subprocess.run([python, "-c", _IMPORT, *modules], capture_output=True, text=True, cwd=folder)
    return "" if not done.returncode else f"import: {done.stderr.strip().splitlines()[-1][:300]}"


def _run(command: Sequence[str]) -> str:
    """Run a command; return the end of what it says where it fails, or that it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"not done after {PATIENCE_S} s"
    return " ".join(done.stderr.split())[-400:] or "failed" if done.returncode else ""


def modules_of(package: str, place: Path) -> list[str]:
    """Return the module that an installed package is about: called as it is, else its first public one."""
    wanted = re.sub(r"[-_.]+", "[-_.]", package)
    for told in place.glob("lib/python*/site-packages/*.dist-info/top_level.txt"):
        if re.fullmatch(rf"{wanted}-[^-]+\.dist-info", told.parent.name, re.IGNORECASE):
            names = [name for name in told.read_text().split() if not name.startswith("_")]
            return [name for name in names if normalise(name) == normalise(package)] or names[:1]
    return [package.replace("-", "_")]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", default="")
    parser.add_argument("--install", type=int, default=0)
    parser.add_argument("--pythons", type=Path)
    parser.add_argument("--small", action="store_true", help="install only sets without torch and tensorflow")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    asked = [case for case in read_cases(options.cases) if case.crash or case.conflicts]
    chosen = sorted(asked, key=lambda case: zlib.crc32((options.seed + case.name).encode()))[: options.sample]
    status: Counter[str] = Counter()
    solved: list[tuple[Case, PinSet]] = []
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                pins = propose(case, Path(folder))
            except InputError as error:
                status["refused"] += 1
                print(f"    {case.name}: {error}")
                continue
        status[pins.status] += 1
        if pins.status == "solved":
            solved.append((case, pins))
        elif options.show:
            print(f"    {case.name}: {json.dumps(pins.as_json())[:300]}", flush=True)
    print(f"{len(chosen)} asked: {dict(status)}", flush=True)
    if options.small:
        solved = [(case, pins) for case, pins in solved if not _LARGE & {pin.name for pin in pins.pins}]
    _installed(solved[: options.install], options.pythons, options.show)


def _installed(solved: Sequence[tuple[Case, PinSet]], pythons: Path, show: bool) -> None:
    works = 0
    for case, pins in solved:
        with tempfile.TemporaryDirectory() as folder:
            trouble = install(case, pins, pythons, Path(folder))
        works += not trouble
        if show:
            print(f"    {case.name}: {trouble or 'works'}", flush=True)
    if solved:
        print(f"{works} of {len(solved)} installed and imported")


if __name__ == "__main__":
    main()
