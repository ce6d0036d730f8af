"""How long `profile` searches, on the processor's clock, with rows of one length and of unlike lengths.

python benchmarks/searches.py
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from typing import Any

from envdoctor.api import choose_profile

MODELS = (
    "qwen2.5-0.5b", "qwen2.5-7b", "llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "gemma-2-9b",
    "mistral-7b-v0.3", "qwen3-30b-a3b", "gpt-oss-20b", "phi-4",
)  # fmt: skip
CARDS = (["RTX 4090"], ["A100 80GB"], ["H100 80GB"], ["RTX 4090"] * 4, ["H100 80GB"] * 8)
FRAMEWORKS = ("trl", "transformers", "axolotl", "llamafactory", "ms-swift")
METHODS = ("auto", "auto", "lora", "full", "auto")
LENGTHS = (1024, 2048, 4096, 8192)
SHORTEST = 0.35
ALLOWED_S = 0.2


def searches() -> list[dict[str, Any]]:
    """Return thirty questions of many kinds; each seventh is of GRPO."""
    found = []
    for number, model in enumerate(itertools.chain.from_iterable(zip(*[MODELS] * 3, strict=True)), 1):
        task = "sft" if number % 7 else "grpo"
        found.append({
            "model": model,
            "gpus": CARDS[number * 7 % 5],
            "framework": FRAMEWORKS[number * 3 % 5] if task == "sft" else "trl",
            "task": task,
            "seq": LENGTHS[number % 4],
            "method": METHODS[number % 5],
        })  # fmt: skip
    return found


def timed(asked: dict[str, Any]) -> float:
    """Return the seconds of one search."""
    started = time.process_time()
    choose_profile(**asked)
    return time.process_time() - started


def main() -> None:
    """Print a line for each kind of rows."""
    asked = searches()
    timed(asked[0])  # reads the tables
    unlike = [{**one, "shortest_row": int(one["seq"] * SHORTEST)} for one in asked]
    for name, questions in (("rows of one length", asked), ("rows of unlike lengths", unlike)):
        found = sorted(map(timed, questions))
        over = sum(seconds > ALLOWED_S for seconds in found)
        sys.stdout.write(
            f"{name}: {len(found)} searches, mean {statistics.mean(found):.3f} s, median"
            f" {statistics.median(found):.3f}, worst {found[-1]:.3f}, {over} over {ALLOWED_S}\n"
        )


if __name__ == "__main__":
    main()
