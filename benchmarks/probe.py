"""How much the probes cost: whole processes on a made environment, against a bare interpreter.

python benchmarks/probe.py [--distributions 400] [--runs 15]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from envdoctor.probes.travel import build_zipapp


class Cost(NamedTuple):
    """The cost of one process: seconds of wall clock and of processor, and its peak memory in MiB."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def make_environment(folder: Path, count: int, asked: int = 400) -> None:
    """Make a virtual environment of `count` distributions whose METADATA are as long as real ones.

    They require the first `asked` of all names: of more than `count`, some are missing.
    """
    site = folder / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    source = random.Random(7)
    for number in range(count):
        _install(site, f"package-{number}", source, asked)


def _install(site: Path, name: str, source: random.Random, asked: int) -> None:
    info = site / f"{name.replace('-', '_')}-1.{source.randrange(99)}.dist-info"
    info.mkdir()
    headers = [f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0", *["Classifier: Topic :: Software"] * 20]
    headers += [f"Requires-Dist: package-{source.randrange(asked)}>=1" for _ in range(source.randrange(12))]
    headers += [f"Requires-Dist: other-{n}; extra == 'all'" for n in range(source.randrange(40))]
    text = "\n".join(headers) + "\n\n" + "A description of some length.\n" * source.randrange(50, 1500)
    (info / "METADATA").write_text(text)
    (info / "INSTALLER").write_text("pip\n")
    (info / "RECORD").write_text(f"{name}/__init__.py,,\n" * 50)


def measure(command: list[str], environ: dict[str, str], allowed: tuple[int, ...] = (0,)) -> Cost:
    """Run one process and return what it cost; ends the benchmark at an exit code that is not `allowed`."""
    started = time.perf_counter()
    child = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - started
    if child.returncode not in allowed:
        raise SystemExit(f"{command}: ended with {child.returncode}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Print a table of medians, and ratios against the bare interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--distributions", type=int, default=400)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_environment(folder / "venv", options.distributions)
        build_zipapp(str(folder / "probe.pyz"))
        environ = {**os.environ, "VIRTUAL_ENV": str(folder / "venv")}
        commands = {
            "bare interpreter": [sys.executable, "-c", "pass"],
            "bare, json+re+ctypes+threading": [sys.executable, "-c", "import json, re, ctypes, threading"],
            "envdoctor probe": [sys.executable, "-m", "envdoctor", "probe"],
            "probe.pyz": [sys.executable, str(folder / "probe.pyz")],
        }
        costs = {
            title: [measure(one, environ) for one in [command] * options.runs]
            for title, command in commands.items()
        }
    _print(costs, options.distributions)


def _print(costs: dict[str, list[Cost]], count: int) -> None:
    floor = statistics.median(cost.cpu_s for cost in costs["bare interpreter"])
    print(f"{count} distributions; medians of {len(costs['bare interpreter'])} processes")
    print(f"{'':32} {'wall s':>8} {'cpu s':>8} {'x bare':>7} {'MiB':>6}")
    for title, runs in costs.items():
        wall, cpu, peak = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"{title:32} {wall:8.3f} {cpu:8.3f} {cpu / floor:7.1f} {peak:6.1f}")


if __name__ == "__main__":
    main()
