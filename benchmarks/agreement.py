"""Pins and diagnosis held together: `python benchmarks/agreement.py [--requests 500] [--seed 1]`.

Draws requests of the stack and targets (cards, drivers, Pythons, dates), pins each, and diagnoses the
environment that the pins describe on that very target: no error is right. The offenders are printed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from envdoctor.cli import main as envdoctor
from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Distribution, Driver, DriverVersion, Environment, Facts, Host, Observed
from envdoctor.findings import Severity
from envdoctor.matrix import load_matrix
from envdoctor.matrix.gpus import declared_gpu

NAMES = (
    *("torch", "transformers", "accelerate", "peft", "trl", "datasets", "bitsandbytes", "deepspeed"),
    *("xformers", "vllm", "sglang", "liger-kernel", "torchvision", "torchaudio", "sentence-transformers"),
    *("optimum", "gradio", "tokenizers", "huggingface-hub", "safetensors", "torchao", "diffusers", "wandb"),
    *("numpy", "pandas", "ray"),
)
CARDS = ("T4", "V100", "A10", "A100 80GB", "RTX 3090", "RTX 4090", "L40S", "H100", "H200", "B200", "RTX 5090")
DRIVERS = ("535.183.01", "550.54.15", "560.35.03", "570.133.20", "580.95.05", "610.43.02")
YEARS = ("2024-03-01", "2024-09-01", "2025-03-01", "2025-09-01", "2026-03-01", None)


def draw(random_: random.Random) -> tuple[list[str], str, str, str, str | None]:
    """Return names, card, driver, Python and day."""
    names = random_.sample(NAMES, random_.randint(1, 5))
    python = random_.choice(("3.10", "3.11", "3.12"))
    return names, random_.choice(CARDS), random_.choice(DRIVERS), python, random_.choice(YEARS)


def pins_of(names: list[str], card: str, driver: str, python: str, day: str | None) -> dict[str, str] | None:
    """Return our pins with their variants as local labels, or None where there are none."""
    words = ["pin", *names, "--gpu", card, "--driver", driver, "--python-version", python, "--allow-source"]
    words += ["--platform", "x86_64-manylinux_2_35", "--format", "json"]
    words += ["--exclude-newer", day] if day else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pins.json"
        envdoctor([*words, "-o", str(out)])
        told = json.loads(out.read_text()) if out.exists() else {"status": "failed"}
    if told["status"] != "solved":
        return None
    return {p["name"]: f"{p['version']}+{p['index']}" if p["index"] else p["version"] for p in told["pins"]}


def facts_of(pins: dict[str, str], card: str, driver: str, python: str) -> Facts:
    """Return the machine that has exactly the pins."""
    return Facts(
        driver=Driver(version=Observed(DriverVersion.parse(driver), "target")),
        gpus=Observed((declared_gpu(load_matrix(), card),), "target"),
        host=Host(
            os=Observed("linux", "target"),
            arch=Observed("x86_64", "target"),
            glibc=Observed("2.35", "target"),
        ),
        environment=Environment(
            python=Observed(python, "target"),
            distributions={n: Distribution(n, "pins", version=v) for n, v in pins.items()},
            complete=True,
        ),
    )


def main() -> None:
    """Print each set that contradicts itself, and the count."""
    parser = argparse.ArgumentParser(description="Pins and diagnosis held together.")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random_ = random.Random(arguments.seed)
    solved, wrong, kinds = 0, 0, Counter[str]()
    for _ in range(arguments.requests):
        names, card, driver, python, day = draw(random_)
        pins = pins_of(names, card, driver, python, day)
        if pins is None:
            continue
        solved += 1
        found = diagnose_facts(facts_of(pins, card, driver, python), complete=False).findings
        errors = [f for f in found if f.severity is Severity.ERROR]
        if errors:
            wrong += 1
            kinds.update(f.id for f in errors)
            print(names, card, driver, python, day, [f.summary[:140] for f in errors], flush=True)
    print(
        f"{arguments.requests} requests, {solved} solved, {wrong} whose diagnosis has an error: {dict(kinds)}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
