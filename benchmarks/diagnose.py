"""What a whole `envdoctor diagnose` costs, beside torch's own report, in one run.

    python benchmarks/diagnose.py [--runs 15] [--torch-python PYTHON] [--lines]

Medians of whole processes, their modules compiled to bytecode as an installer leaves them; the ratio to
`python -m torch.utils.collect_env` where a torch is given. With `--lines` alone what a line costs that no
rule accounts for, and one that a rule knows, beside a text without one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from probe import Cost, make_environment, measure

LINE = "2026-11-20 12:00:00 INFO step {n} loss 1.2345 lr 1e-4 grad_norm 0.9 tokens/s 12345\n"
ERROR = "RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'\n"


def main() -> int:
    """Print one line a command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--torch-python")
    parser.add_argument("--lines", action="store_true", help="measure what a line costs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        if args.lines:
            return _lines(Path(folder), args.runs)
        logs = write_logs(Path(folder))
        floor = report("python -c pass", [sys.executable, "-c", "pass"], args.runs)
        report("envdoctor --version", [*ENVDOCTOR, "--version"], args.runs)
        report("envdoctor --help", [*ENVDOCTOR, "--help"], args.runs)
        lacking = _diagnosis(Path(folder), 400, args.runs)
        ours = _diagnosis(Path(folder), 300, args.runs)
        for name, cost in (("lacking 100", lacking), ("in order", ours)):
            print(f"diagnose, {name} / bare interpreter: {cost.wall_s / floor.wall_s:.1f} times", end="")
            print(f", {cost.cpu_s / floor.cpu_s:.1f} of CPU")
        for name, path in logs.items():
            report(
                f"diagnose --from {name} log", [*ENVDOCTOR, "diagnose", "--format", "json", "--from", path], 5
            )
        if args.torch_python:
            theirs = report(
                "torch.utils.collect_env", [args.torch_python, "-m", "torch.utils.collect_env"], 5
            )
            print(f"collect_env / diagnose: {theirs.wall_s / ours.wall_s:.1f} times")
    return 0


UNEXPLAINED = {
    "no": "",
    "a known": ERROR,
    "an unexplained": "ValueError: the spindle of the left gear was turned twice before it was oiled\n",
}
"""By what it is, a line under a traceback that runs through two libraries."""


def _lines(folder: Path, runs: int) -> int:
    """Print what texts with each line cost, and by how much more than the one without."""
    costs = {}
    for name, line in UNEXPLAINED.items():
        path = folder / f"{name}.log"
        frames = "".join(
            f'  File "/v/lib/python3.11/site-packages/{place}", line 9, in run\n    run()\n'
            for place in ("transformers/trainer.py", "torch/nn/modules/module.py")
        )
        told = f"Traceback (most recent call last):\n{frames}{line}" if line else ""
        path.write_text(f"torch: 2.0.1\ntransformers: 4.40.1\n{told}")
        command = [*ENVDOCTOR, "diagnose", "--format", "json", "--from", str(path)]
        costs[name] = report(f"{name} line", command, runs)
    none = costs["no"]
    for name, cost in costs.items():
        print(f"{name} line: {cost.wall_s - none.wall_s:+.3f} s, {cost.peak_mib - none.peak_mib:+.0f} MiB")
    return 0


ENVDOCTOR = [sys.executable, "-m", "envdoctor"]


def _diagnosis(folder: Path, asked: int, runs: int) -> Cost:
    """Measure the diagnosis of 300 distributions that require `asked` different ones of one another."""
    environment = folder / f"venv-{asked}"
    make_environment(environment, 300, asked)
    python = str(environment / "bin" / "python")
    command = [*ENVDOCTOR, "diagnose", "--format", "json", "--python", python]
    return report(f"diagnose, 300 of {asked} required", command, runs)


def write_logs(folder: Path) -> dict[str, str]:
    """Write logs of 1, 10 and 100 MB with one error near the end; returns their paths by size."""
    paths = {}
    for megabytes in (1, 10, 100):
        path = folder / f"{megabytes}.log"
        count = megabytes * 1_000_000 // len(LINE)
        with path.open("w") as stream:
            stream.writelines(LINE.format(n=n) for n in range(count))
            stream.write("torch: 2.0.1\ntransformers: 4.40.1\n" + ERROR)
        paths[f"{megabytes} MB"] = str(path)
    return paths


def report(name: str, command: list[str], runs: int) -> Cost:
    """Measure and print one command; returns its medians."""
    measure(command, dict(os.environ), (0, 1))  # compiles what it imports
    costs = [measure(command, dict(os.environ), (0, 1)) for _ in range(runs)]
    median = Cost(
        statistics.median(c.wall_s for c in costs),
        statistics.median(c.cpu_s for c in costs),
        max(c.peak_mib for c in costs),
    )
    least = min(c.wall_s for c in costs)
    print(
        f"{name:32} wall {median.wall_s * 1000:7.0f} ms (least {least * 1000:.0f})"
        f"  cpu {median.cpu_s * 1000:7.0f} ms  peak {median.peak_mib:5.0f} MiB"
    )
    return median


if __name__ == "__main__":
    sys.exit(main())
