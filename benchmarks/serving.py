"""Keys and values that vLLM logged, by public threads, beside what is foretold.

    python benchmarks/serving.py [FILE.json]      (default: benchmarks/serving_published.json)

`needed`: bytes for one longest request; `available`: tokens in what a card had left for keys and values;
`started`: what was left of a card at a share of it, and whether one longest request fitted.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envdoctor.matrix import load_matrix, tables
from envdoctor.memory import ServingRun, find_shape, read_constants
from envdoctor.memory.serving import describe_engine, request_keys, utilization_bounds

GIB = 2**30
PUBLISHED = Path(__file__).with_name("serving_published.json")
Row = Mapping[str, Any]


def needed(row: Row, tokens: int) -> int:
    """Bytes of a request of that many tokens."""
    shape, tp = find_shape(row["model"]), row.get("tp", 1)
    return request_keys(shape, 2, tp, 1, tokens, row.get("batched", 8192))


def compared(told: Mapping[str, list[Row]]) -> Iterator[tuple[str, Row, float, float]]:
    """Yield the kind, the row, and its figure as foretold and as published."""
    for row in told["needed"]:
        yield "needed GiB", row, needed(row, row["tokens"]) / GIB, row["gib"]
    for row in told["available"]:
        longest = needed(row, row["longest"])
        yield "tokens", row, row["gib"] * GIB / longest * row["longest"], row["tokens"]
    for row in told["started"]:
        constants = read_constants(
            load_matrix().rows(tables.MemoryRow), {"vllm": row["vllm"], **row.get("beside", {})}
        )
        run = ServingRun(
            find_shape(row["model"]),
            int(row["card_gib"] * GIB),
            row["share"],
            max_model_len=row["longest"],
            max_num_seqs=row.get("seqs"),
            max_batched_tokens=row.get("batched"),
            card=row["card"],
            tp=row.get("tp", 1),
        )
        refused = utilization_bounds(run, constants).refusal(run.utilization)
        if (refused == "") is not row["starts"]:
            sys.stdout.write(f"WRONG: {row['model']} is said {'not ' if refused else ''}to start\n")
        yield "left GiB", row, describe_engine(run, constants).keys / GIB, row["gib"]


def main(arguments: list[str]) -> int:
    """Print a line a figure and the errors of each kind."""
    told = json.loads(Path(arguments[0] if arguments else PUBLISHED).read_text(encoding="utf-8"))
    errors: dict[str, list[float]] = {}
    for kind, row, ours, theirs in compared(told):
        error = 100 * (ours / theirs - 1)
        errors.setdefault(kind, []).append(abs(error))
        sys.stdout.write(
            f"{kind:11} {ours:11.2f} {theirs:11.2f} {error:+6.2f} %  {row['model']:24} {row['source']}\n"
        )
    for kind, found in errors.items():
        sys.stdout.write(
            f"{kind}: {len(found)}, mean {statistics.mean(found):.2f} %, worst {max(found):.2f} %\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
