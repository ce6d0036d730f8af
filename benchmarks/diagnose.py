"""What a whole `envdoctor diagnose` costs, beside torch's own report, in one run.

    python benchmarks/diagnose.py [--runs 15] [--torch-python PYTHON]

Medians of whole processes; the ratio to `python -m torch.utils.collect_env` where a torch is given.
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
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment, logs = Path(folder) / "venv", write_logs(Path(folder))
        make_environment(environment, 300)
        python = str(environment / "bin" / "python")
        floor = report("python -c pass", [sys.executable, "-c", "pass"], args.runs)
        report("envdoctor --version", [*ENVDOCTOR, "--version"], args.runs)
        report("envdoctor --help", [*ENVDOCTOR, "--help"], args.runs)
        ours = report(
            "diagnose, 300 distributions",
            [*ENVDOCTOR, "diagnose", "--format", "json", "--python", python],
            args.runs,
        )
        for name, path in logs.items():
            report(
                f"diagnose --from {name} log", [*ENVDOCTOR, "diagnose", "--format", "json", "--from", path], 5
            )
        if args.torch_python:
            theirs = report(
                "torch.utils.collect_env", [args.torch_python, "-m", "torch.utils.collect_env"], 5
            )
            print(f"collect_env / diagnose: {theirs.wall_s / ours.wall_s:.1f} times")
        print(f"diagnose / bare interpreter: {ours.wall_s / floor.wall_s:.1f} times")
    return 0


ENVDOCTOR = [sys.executable, "-m", "envdoctor"]


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
