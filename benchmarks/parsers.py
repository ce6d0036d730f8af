"""Random profiles given to the frameworks' own parsers: how many each refuses or warns about.

    python benchmarks/parsers.py PYTHON FRAMEWORK... [--number 500] [--seed 1]

PYTHON is an interpreter that has the frameworks. Deprecations count as refusals; what else is warned of is
counted by the lines of standard error that say so. Only what tests/profile/accept.py can read is drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests" / "profile"
sys.path.insert(0, str(TESTS))

from cards import written  # noqa: E402
from test_parsers import SCRIPT, STUB, interpreter_with  # noqa: E402

from envdoctor.errors import EnvdoctorError  # noqa: E402
from envdoctor.memory.recipes import TRAINERS  # noqa: E402
from envdoctor.profile.emit import WRITERS  # noqa: E402

MODELS = (
    "qwen2.5-0.5b",
    "qwen2.5-7b",
    "llama-3.2-1b",
    "llama-3.1-8b",
    "mistral-7b",
    "gemma-2-2b",
    "qwen3-4b",
)
CARDS = ("RTX 4090", "L40S", "A100 40GB", "A100 80GB", "H100", "H200", "T4", "V100 32GB")


def draw(dice: random.Random, framework: str) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Return a model, cards and the rest of a workload."""
    count = dice.choice((1, 1, 2, 4, 8))
    sharing = (None, "ddp", "zero2", "zero3", "fsdp") if count > 1 else (None,)
    usual = framework in TRAINERS and framework != "transformers"
    task = dice.choice(("sft", *WRITERS[framework].tasks)) if usual else "sft"
    others: dict[str, Any] = {
        "method": dice.choice(("auto", "full", "lora", "qlora")),
        "seq": dice.choice((512, 1024, 2048, 4096)),
        "parallel": dice.choice(sharing),
        "global_batch": dice.choice((None, 8 * count, 64 * count)),
        "lora_rank": dice.choice((4, 8, 32)),
        "task": task,
    }
    return dice.choice(MODELS), (dice.choice(CARDS),) * count, others


def wrote(framework: str, number: int, seed: int, versions: dict[str, str], folder: Path) -> list[Path]:
    """Write that many profiles that fit, and return their folders."""
    dice, folders = random.Random(seed), []
    while len(folders) < number:
        model, gpus, others = draw(dice, framework)
        try:
            profile = written(framework, model, gpus, stack=versions, **others)
        except EnvdoctorError:
            continue
        if not profile.files or profile.found.choice is None:
            continue
        folders.append(folder / f"{len(folders):03}")
        folders[-1].mkdir()
        ranks = str(profile.found.choice.gpus)  # vLLM's own cards are none of the trainer's
        for name, text in {**profile.files, "cards": ranks}.items():
            (folders[-1] / name).write_text(text, encoding="utf-8")
    return folders


def tried(framework: str, python: str, number: int, seed: int) -> None:
    """Print how many profiles a framework's parser refused, and what it warned of."""
    known = interpreter_with(framework)
    if known is None:
        sys.stdout.write(f"{framework}: {python} has it not\n")
        return
    with tempfile.TemporaryDirectory(prefix="written-") as place:  # axolotl takes "mpt" in a path for a model
        stub = Path(place) / "stub"
        stub.mkdir()
        (stub / "config.json").write_text(json.dumps(STUB), encoding="utf-8")
        folders = wrote(framework, number, seed, known[1], Path(place))
        command = [python, str(SCRIPT), framework, str(stub), *map(str, folders)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place)
    told = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else {}
    refused = Counter(why[:160] for why in told.values() if why)
    warned = Counter(line[-160:] for line in done.stderr.splitlines() if "warn" in line.lower())
    sys.stdout.write(f"{framework} {known[1]}: {len(told)} read, {sum(refused.values())} refused\n")
    for why, count in (*refused.most_common(5), *warned.most_common(5)):
        sys.stdout.write(f"  {count} x {why}\n")
    if not told:
        sys.stdout.write(done.stderr[-1000:] + "\n")


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("frameworks", nargs="+")
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.environ["ENVDOCTOR_PARSERS_PYTHON"] = args.python
    for framework in args.frameworks:
        tried(framework, args.python, args.number, args.seed)


if __name__ == "__main__":
    main()
