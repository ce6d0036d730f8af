"""Pins side by side with uv: `python benchmarks/pins.py [--python 3.11]... [--platform TAG]... [--sets A,G]`.

For each set and target: does `uv pip compile -c` accept our pins with an identical set, is anything asked for
older than in uv's own answer (then the pin must say why), and what do the two cost in CPU and wall time. The
network is used by uv alone. `--offline-times` repeats uv with `--offline` from its warm cache.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

A = ["torch", "transformers", "accelerate", "peft", "trl", "bitsandbytes", "datasets"]
B = [
    *A,
    *("deepspeed", "sentence-transformers", "wandb", "evaluate", "optimum", "liger-kernel"),
    *("hf-transfer", "tensorboard", "einops"),
]
C = [*A, "vllm", "xformers", "wandb"]
D = [*B, "vllm", "xformers"]
SETS = {"A": A, "B": B, "C": C, "D": D, "G": [name for name in D if name != "deepspeed"]}
SOURCES = {"B", "D"}
"""Sets with a package that exists as source only."""


@dataclass(frozen=True)
class Run:
    """What a command wrote, and what it cost in seconds."""

    code: int
    text: str
    wall: float
    cpu: float


def run(*words: str) -> Run:
    """Run a command and measure it."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(done.returncode, done.stdout or done.stderr, wall, cpu)


def pins_of(text: str) -> dict[str, str]:
    """Return the pins of a constraints file."""
    return dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", text, re.MULTILINE))


def ours(names: list[str], python: str, platform: str, *more: str) -> Run:
    """Return our constraints."""
    target = ("--python-version", python, "--platform", platform)
    return run(sys.executable, "-m", "envdoctor", "pin", *names, *target, *more)


def uvs(names: list[str], python: str, platform: str, *more: str) -> Run:
    """Return uv's own answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(names))
        file.flush()
        target = ("--python-version", python, "--python-platform", platform)
        return run("uv", "pip", "compile", file.name, *target, "--no-header", "--no-annotate", "-q", *more)


def older(names: list[str], mine: dict[str, str], theirs: dict[str, str], text: str) -> list[str]:
    """Return what is older in our answer than in uv's, with the reason that the file gives."""
    found = []
    for name in names:
        if name in theirs and Version(mine[name]) < Version(theirs[name]):
            block = text.split(f"\n{name}==")[1].split("\n    # ", 1)[-1]
            reasons = [line for line in block.split("\n") if "not " in line]
            found.append(
                f"{name} {mine[name]} < {theirs[name]}: {reasons[0].strip(' #') if reasons else 'NO REASON'}"
            )
    return found


def compare(label: str, python: str, platform: str, offline_times: bool) -> bool:
    """Print one comparison; return whether uv accepted our pins unchanged."""
    names = SETS[label]
    source = ("--allow-source",) if label in SOURCES else ()
    no_build = () if label in SOURCES else ("--no-build",)
    answer = ours(names, python, platform, *source)
    mine = pins_of(answer.text)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(answer.text)
        file.flush()
        checked = uvs(names, python, platform, "-c", file.name, *no_build)
    same = checked.code == 0 and pins_of(checked.text) == mine
    own = uvs(names, python, platform, *no_build)
    theirs = pins_of(own.text) if own.code == 0 else {}
    offline = uvs(names, python, platform, "--offline", *no_build) if offline_times else None
    print(
        f"{label} {python} {platform}: {len(mine)} pins, uv {'accepts, identical' if same else 'DIFFERS'}; ",
        end="",
    )
    print(
        f"ours {answer.wall:.2f} s wall {answer.cpu:.2f} s CPU, uv warm {own.wall:.2f}/{own.cpu:.2f}", end=""
    )
    print(f", uv offline {offline.wall:.2f}/{offline.cpu:.2f}" if offline else "")
    for line in older(names, mine, theirs, answer.text):
        print(f"    {line}")
    newer = [n for n in names if n in theirs and Version(mine[n]) > Version(theirs[n])]
    if newer:
        print("    newer than uv's: " + ", ".join(f"{n} {mine[n]} > {theirs[n]}" for n in newer))
    return same


def growth(python: str, platform: str) -> None:
    """Print how time grows with the number of packages in the answer."""
    order = [*SETS["D"], "sglang", "axolotl", "lightning", "ms-swift"]
    for count in (1, 2, 4, 7, 12, 16, 18, len(order)):
        answer = ours(order[:count], python, platform, "--allow-source")
        pins = len(pins_of(answer.text))
        print(f"{count} asked for, {pins} pins: {answer.wall:.2f} s wall, {answer.cpu:.2f} s CPU")


def main() -> None:
    """Compare every set on every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append")
    parser.add_argument("--platform", action="append")
    parser.add_argument("--sets", default="A,B,C,D,G")
    parser.add_argument("--offline-times", action="store_true")
    parser.add_argument("--growth", action="store_true")
    args = parser.parse_args()
    pythons = args.python or ["3.10", "3.11", "3.12", "3.13"]
    platforms = args.platform or ["x86_64-manylinux_2_28", "x86_64-manylinux_2_35"]
    if args.growth:
        growth(pythons[-1], platforms[-1])
        return
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    targets = [
        (label, python, tag) for label in args.sets.split(",") for python in pythons for tag in platforms
    ]
    results = [compare(*target, args.offline_times) for target in targets]
    print(f"{sum(results)} of {len(results)} accepted unchanged")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
