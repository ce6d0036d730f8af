"""Tokens that SGLang logged it has room for, by public pages, beside what is foretold.

python benchmarks/sglang.py [FILE.json]      (default: benchmarks/sglang_published.json)
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envdoctor.memory.answer import answer
from envdoctor.memory.run import Prediction
from envdoctor.memory.stated import StatedRun, ask

PUBLISHED = Path(__file__).with_name("sglang_published.json")
Row = Mapping[str, Any]


def predicted(row: Row) -> Prediction:
    """Return what is foretold of the engine that wrote a log."""
    run = StatedRun(task="serve", engine="sglang", tp=row.get("tp", 1), mem_fraction_static=row.get("share"))
    return answer(ask(row["model"], run, gpu=row["card"], stack=f"sglang={row['sglang']}"))


def tokens(prediction: Prediction) -> int:
    """Return the tokens that an answer tells."""
    told = next(note for note in prediction.assumptions if note.startswith("keys and values: "))
    return int(told.split()[3])


def main(file: Path) -> None:
    """Print a line for each log, and the errors of those whose card is named."""
    errors: dict[str, list[float]] = {"now": [], "blind": []}
    for row in json.loads(file.read_text())["logs"]:
        found = predicted(row)
        now, blind = (n / row["tokens"] - 1 for n in (tokens(found), row["blind"]))
        unnamed = row.get("unnamed", False)
        told = f"{row['model']} on {row.get('tp', 1)} x {row['card']}{' (not named)' if unnamed else ''}"
        print(f"{told:60} {row['tokens']:8} {now:+7.1%} blind {blind:+7.1%} starts {not found.refused}")
        if not unnamed:
            errors["now"].append(abs(now))
            errors["blind"].append(abs(blind))
    for name, each in errors.items():
        mean, worst = statistics.mean(each), max(each)
        within = f"{sum(error <= 0.03 for error in each)} within 3 %"
        print(f"{name}: {len(each)} named cards, mean {mean:.1%}, worst {worst:.1%}, {within}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PUBLISHED)
