"""Keys and values that vLLM logged, by public pages, beside what is foretold.

    python benchmarks/serving.py [FILE.json]      (default: benchmarks/serving_published.json)

`needed`: bytes for one longest request; `logs`: what was left of a card at a share of it, whether one
longest request fitted, and how many tokens it holds. Rows of `set` "held out" were not looked at while terms
were found.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envdoctor.matrix import load_matrix, tables
from envdoctor.matrix.gpus import declared_gpu
from envdoctor.memory import Constants, ServingRun, find_shape, read_constants
from envdoctor.memory.serving import Engine, describe_engine, request_keys, utilization_bounds

GIB = 2**30
PUBLISHED = Path(__file__).with_name("serving_published.json")
Row = Mapping[str, Any]


def run_of(row: Row) -> ServingRun:
    """Return the engine that wrote a log, on a card of no matter what size where none is told."""
    return ServingRun(
        find_shape(row["model"]),
        int(row.get("card_gib", 80) * GIB),
        row.get("share", 0.9),
        max_model_len=row["longest"],
        max_num_seqs=row.get("seqs"),
        max_batched_tokens=row.get("batched"),
        card=row.get("card", ""),
        tp=row.get("tp", 1),
        kv_dtype=row.get("kv", "auto"),
    )


def constants_of(row: Row) -> Constants:
    """Return the figures of the log's release and card."""
    matrix = load_matrix()
    capability = declared_gpu(matrix, row["card"]).compute_capability if "card" in row else None
    pair = (capability.major, capability.minor) if capability else None
    stack = {"vllm": row["vllm"]} if "vllm" in row else {}
    return read_constants(matrix.rows(tables.MemoryRow), {**stack, **row.get("beside", {})}, pair)


def compared(row: Row, run: ServingRun, engine: Engine) -> Iterator[tuple[str, float, float]]:
    """Yield each figure of a log: its kind, as foretold, and as published."""
    if "tokens" in row:
        yield "tokens", row["gib"] * GIB / engine.needed_keys * engine.needed_tokens, row["tokens"]
    if "starts" in row:
        refused = utilization_bounds(run, constants_of(row)).refusal(run.utilization)
        yield "left GiB", engine.keys / GIB, row["gib"]
        yield "started", float(not refused), float(row["starts"])


def figures(told: Mapping[str, list[Row]]) -> Iterator[tuple[str, str, Row, float, float]]:
    """Yield the set, the kind, the row, and its figure as foretold and as published."""
    for row in told["needed"]:
        shape, batched = find_shape(row["model"]), row.get("batched", 8192)
        ours = request_keys(shape, 2, row.get("tp", 1), 1, row["tokens"], batched)
        yield "settled", "needed GiB", row, ours / GIB, row["gib"]
    for row in told["logs"]:
        run = run_of(row)
        for kind, ours, theirs in compared(row, run, describe_engine(run, constants_of(row))):
            yield row.get("set", "settled"), kind, row, ours, theirs


def main(arguments: list[str]) -> int:
    """Print a line a figure and the errors of each set and kind."""
    told = json.loads(Path(arguments[0] if arguments else PUBLISHED).read_text(encoding="utf-8"))
    errors: dict[tuple[str, str], list[float]] = {}
    for group, kind, row, ours, theirs in figures(told):
        error = 100 * (ours / theirs - 1) if kind != "started" else 100 * (ours - theirs)
        errors.setdefault((group, kind), []).append(abs(error))
        page = told["pages"].get(row["source"], row["source"])
        sys.stdout.write(f"{kind:10} {ours:11.2f} {theirs:11.2f} {error:+6.2f} %  {row['model']:36} {page}\n")
    for (group, kind), found in sorted(errors.items()):
        near = sum(error <= 3 for error in found)
        sys.stdout.write(
            f"{group}, {kind}: {len(found)}, mean {statistics.mean(found):.2f} %, worst {max(found):.2f} %,"
            f" within 3 %: {near}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
