"""Measures the sets that `upgrade` proposes for upgrades of old projects, and installs some of them.

    python benchmarks/upgrade_sets.py CASES.jsonl.gz [--sample N] [--install K --pythons FOLDER] [--show]

The file is the one that `upgrades.py` reads; asked are upgrades that ended in a crash or a conflict. A set
that is solved is installed into an environment of the Python that the project ran in (FOLDER holds one
folder a release), and what was upgraded is imported there, with all that the set changes. Reads the package
index.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from upgrades import Case, read_cases

import envdoctor
from envdoctor.errors import InputError
from envdoctor.solve.answer import PinSet

_LARGE = {"torch", "tensorflow", "tensorflow-gpu"}
_PYTHON = re.compile(r"python(3\.\d{1,2})")
_IMPORT = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
_MODULES = {
    "scikit-learn": "sklearn",
    "scikit-image": "skimage",
    "pillow": "PIL",
    "opencv-python": "cv2",
    "pytorch-lightning": "pytorch_lightning",
    "tensorboardx": "tensorboardX",
    "tensorflow-gpu": "tensorflow",
    "pyyaml": "yaml",
}


def python_of(case: Case) -> str:
    """Return the Python that the case ran in; 3.7, the benchmark's own, where no path tells."""
    match = _PYTHON.search(case.traceback)
    return match[1] if match else "3.7"


def propose(case: Case, folder: Path) -> PinSet:
    """Return the set for a case's upgrade, from its listing; raises InputError."""
    freeze = folder / "freeze.txt"
    freeze.write_text(case.freeze, encoding="utf-8")
    _, package, version = case.upgraded
    answer = envdoctor.upgrade(
        [f"{package}=={version}"],
        [],
        target=str(freeze),
        python_version=python_of(case),
        platform="x86_64-manylinux_2_35",
        allow_source=True,
    )
    return answer.pins


def install(case: Case, pins: PinSet, pythons: Path, folder: Path) -> str:
    """Install a set and import what it is about; return what went wrong, or nothing."""
    release = next(iter(sorted(pythons.glob(f"{python_of(case)}.*"))), None)
    if release is None:
        return "no such Python here"
    place = folder / "env"
    subprocess.run([release / "bin" / "python", "-m", "venv", place], check=True, capture_output=True)
    changed = {change.name for change in pins.changes} | {case.upgraded[1].lower()}
    wanted = [f"{pin.name}=={pin.version}" for pin in pins.pins if pin.name in changed or not pin.label]
    for command in (
        ["-m", "pip", "install", "-q", "-U", "pip<21.4"],
        ["-m", "pip", "install", "-q", *wanted],
    ):
        done = subprocess.run([place / "bin" / "python", *command], capture_output=True, text=True)
        if done.returncode:
            return f"install: {done.stderr.strip().splitlines()[-1][:200]}"
    modules = [_MODULES.get(name, name.replace("-", "_")) for name in sorted(changed)]
    run = [place / "bin" / "python", "-c", _IMPORT, *modules]
    done = subprocess.run(run, capture_output=True, text=True)
    return "" if not done.returncode else f"import: {done.stderr.strip().splitlines()[-1][:200]}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--install", type=int, default=0)
    parser.add_argument("--pythons", type=Path)
    parser.add_argument("--small", action="store_true", help="install only sets without torch and tensorflow")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    asked = [case for case in read_cases(options.cases) if case.crash or case.conflicts]
    chosen = random.Random(0).sample(asked, min(options.sample, len(asked)))
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
        if trouble and show:
            print(f"    {case.name}: {trouble}", flush=True)
    if solved:
        print(f"{works} of {len(solved)} installed and imported")


if __name__ == "__main__":
    main()
