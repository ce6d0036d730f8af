"""`pin` beside `uv pip compile`: CPU seconds of both, at 7, 17, 60, 120 and 230 names.

    python benchmarks/pin_speed.py [--runs 3] [--cold]

The names are a usual stack, a larger one, and then what that one brings. `first` is an answer of which
nothing is kept, `again` the same command once more; uv answers offline from its own cache, filled before.
With `--cold` uv starts from an empty cache and reads its index, envdoctor the facts that it ships, without
a network. Python's compiled files are there for all. The first line is what no answer does without: Python's
start, that with the command line's modules, and that with those of an answer.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from envdoctor.api import pin

USUAL = ("torch", "transformers", "accelerate", "peft", "trl", "bitsandbytes", "datasets")
LARGER = (
    *USUAL, "sentence-transformers", "wandb", "evaluate", "optimum", "liger-kernel", "hf-transfer",
    "tensorboard", "einops", "vllm", "xformers",
)  # fmt: skip
SIZES = (7, 17, 60, 120, 230)
_MODULES = """import gc; gc.disable()
from envdoctor.door import import_without_more; import_without_more()
import envdoctor.cli.pin
from envdoctor.solve import asking, documents, doubts, kept, pinning, request_files, summary"""
PYTHON, PLATFORM = "3.11", "x86_64-manylinux_2_35"


def main() -> None:
    """Print a line a size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    python = sys.executable
    bare = [[python, "-c", "pass"], [python, "-m", "envdoctor", "pin", "--help"], [python, "-c", _MODULES]]
    starts = (min(seconds(command) for _ in range(args.runs)) for command in bare)
    print("start {:.3f} s, command line {:.3f} s, modules {:.3f} s".format(*starts), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            measure(Path(folder), named()[:size], args.runs, args.cold)


def named() -> list[str]:
    """Return the names, those asked for first, CUDA libraries last."""
    answer = pin(LARGER, python_version=PYTHON, platform=PLATFORM, offline=True)
    brought = [one.name for one in answer.pins if one.name not in LARGER]
    return [*LARGER, *sorted(brought, key=lambda name: name.startswith(("nvidia-", "cuda-")))]


def measure(folder: Path, names: list[str], runs: int, cold: bool) -> None:
    """Print what one size takes."""
    asked, kept, cache = folder / "asked.in", folder / "data", folder / "cache"
    asked.write_text("\n".join(names), encoding="utf-8")
    told = ["--python-version", PYTHON, "--offline", "--platform", PLATFORM, "-o", str(folder / "pins.txt")]
    ours = [sys.executable, "-m", "envdoctor", "pin", "-r", str(asked), *told]
    theirs = ["uv", "pip", "compile", "-q", "--no-build", str(asked), "--python-version", PYTHON]
    theirs += ["--python-platform", PLATFORM]
    if not cold:
        seconds(theirs)
        theirs += ["--offline"]
    times: list[tuple[float, float, float]] = []
    for _ in range(runs):
        shutil.rmtree(kept, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)
        uv = seconds(theirs, UV_CACHE_DIR=str(cache)) if cold else seconds(theirs)
        times.append((uv, *(seconds(ours, XDG_DATA_HOME=str(kept)) for _ in range(2))))
    uv, first, again = map(min, zip(*times, strict=True))
    print(f"{len(names)} names: uv {uv:.3f} s; first {first:.3f} s, {first / uv:.2f} times; ", end="")
    print(f"again {again:.3f} s, {again / uv:.2f} times", flush=True)


def seconds(command: list[str], **more: str) -> float:
    """Return the CPU seconds of a command; raises CalledProcessError when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    here = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, capture_output=True, env={**here, **more})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
