"""Families traced and measured: the peak of real layers on a card beside that of fake tensors on the CPU.

    python benchmarks/families.py --python PYTHON_WITH_TORCH [--method lora|full] CONFIG_FOLDER...

Needs a GPU for the measured half; each CONFIG_FOLDER holds a config.json. One line a family: both peaks of
the whole model in GiB, and how far apart they lie.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

GIB = 2**30


def main() -> int:
    """Print the table; 1 where a family gave no answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--method", default="lora")
    parser.add_argument("--seq", default="2048")
    args = parser.parse_args()
    with ThreadPoolExecutor(8) as pool:
        traced = pool.map(lambda folder: peak(folder, "--trace", args), args.folders)
        measured = [peak(folder, "--measure", args) for folder in args.folders]
        rows = list(zip(args.folders, traced, measured, strict=True))
    errors = []
    for folder, foretold, real in rows:
        if isinstance(foretold, str) or isinstance(real, str):
            reasons = [said for said in (foretold, real) if isinstance(said, str)]
            print(f"{folder.name:48} no answer: {'; '.join(reasons)[:200]}")
            continue
        errors.append(100 * (foretold / real - 1))
        print(
            f"{folder.name:48} traced {foretold / GIB:8.2f}  measured {real / GIB:8.2f}  {errors[-1]:+6.2f} %"
        )
    if errors:
        sizes = [abs(error) for error in errors]
        print(f"{len(errors)} families, mean {statistics.mean(sizes):.2f} %, worst {max(sizes):.2f} %")
    return 0 if len(errors) == len(rows) else 1


def peak(folder: Path, tier: str, args: argparse.Namespace) -> int | str:
    """Return the peak allocated in bytes by that tier, or why there is none."""
    run = [
        "--method",
        args.method,
        "--batch",
        "1",
        "--seq",
        args.seq,
        "--format",
        "json",
        "--python",
        args.python,
    ]
    command = [sys.executable, "-m", "envdoctor", "memory", "--model", str(folder), tier, *run]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    if done.returncode not in (0, 1):
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
    return int(json.loads(done.stdout)["peak_allocated_bytes"])


if __name__ == "__main__":
    sys.exit(main())
