"""What smokes cost without isolation, and whether they can be fooled; runs in the examined interpreter.

`smoke_plain.py times OPS|- PACKAGES|- [cpu]` measures imports, CUDA start and first calls in this one plain
process; `smoke_plain.py mutations OPS [cpu]` spoils every output of every op in turn; `graphs N` captures and
replays graphs on each card in turn, N times, as the op does and without a stream of its own.
"""

import fnmatch
import importlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

WORKER = Path(__file__).resolve().parent.parent / "envdoctor" / "smokes" / "worker.py"


def load_worker():
    """Return the worker as a module."""
    spec = importlib.util.spec_from_file_location("smoke_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(ops, patterns):
    """Return the ops that comma-separated globs mean."""
    names = patterns.split(",")
    return [op for op in ops.values() if any(fnmatch.fnmatchcase(op.name, name) for name in names)]


def context(worker, torch, device):
    """Return what an op is given."""
    gpus = () if device == "cpu" else (0,)
    return worker.load_part("ops.context").Context(
        torch, device, gpus, False, os.environ.get("TMPDIR", "/tmp")
    )


def timed(action):
    """Return the seconds of an action, and its result."""
    start = time.perf_counter()
    result = action()
    return (time.perf_counter() - start), result


def times(patterns, packages, device):
    """Measure imports, CUDA start and first calls."""
    worker = load_worker()
    ops, measure = worker.load_part("ops").load(), worker.load_part("measure")
    parts = {}
    parts["import torch"], torch = timed(lambda: importlib.import_module("torch"))
    if device != "cpu":
        parts["CUDA start"], _ = timed(lambda: torch.zeros(1, device=device))
    for package in () if packages == "-" else packages.split(","):
        parts[f"import {package}"], _ = timed(lambda name=package: importlib.import_module(name))
    for op in () if patterns == "-" else chosen(ops, patterns):
        ctx = context(worker, torch, device)
        trial = op.function(ctx)
        parts[op.name], _ = timed(lambda trial=trial, ctx=ctx: (trial.call(), measure.synchronise(ctx)))
    return {"parts_s": parts, "sum_s": sum(parts.values())}


def mutations(patterns, device):
    """Spoil every output of every op in turn; return what was caught and what was not."""
    worker = load_worker()
    ops, measure = worker.load_part("ops").load(), worker.load_part("measure")
    skip = worker.load_part("ops.registry").Skip
    torch = importlib.import_module("torch")
    caught, missed, skipped, reserved = [], [], [], {}
    for op in chosen(ops, patterns):
        index = 0
        while True:
            os.environ[measure.MUTATE] = f"{op.name}:{index}"
            verdict = measure.run_op(op, context(worker, torch, device), skip, lambda phase: None)
            if device != "cpu" and not op.last:
                reserved[op.name] = torch.cuda.max_memory_reserved()
            if verdict["outcome"] == "skipped":
                skipped.append(op.name)
                break
            if verdict["outcome"] == "passed":
                # Past the last output nothing is spoiled any more; before it, a pass is a miss.
                if index == 0:
                    missed.append(op.name)
                break
            if f"output {index} is off" not in verdict["reason"]:
                missed.append(f"{op.name}:{index}: {verdict['reason']}")
                break
            caught.append(f"{op.name}:{index}")
            index += 1
    return {"caught": len(caught), "ops": len({c.split(":")[0] for c in caught}), "missed": missed,
            "skipped": skipped, "max_reserved_bytes": max(reserved.values(), default=0)}  # fmt: skip


def graphs(rounds):
    """Run `cuda.graph` on each card in turn in one process; then the same without naming the stream."""
    worker = load_worker()
    ops, measure = worker.load_part("ops").load(), worker.load_part("measure")
    part, skip = worker.load_part("ops.context"), worker.load_part("ops.registry").Skip
    torch = importlib.import_module("torch")
    told = {}
    graph = torch.cuda.graph
    for way in ("stream named", "stream of the first capture"):
        if way != "stream named":
            torch.cuda.graph = lambda captured, stream=None: graph(captured)
        for card in [*range(torch.cuda.device_count())] * rounds:
            torch.cuda.set_device(card)
            ctx = part.Context(torch, f"cuda:{card}", (card,), False, os.environ.get("TMPDIR", "/tmp"))
            verdict = measure.run_op(ops["cuda.graph"], ctx, skip, lambda phase: None)
            key = f"{way}, card {card}"
            told.setdefault(key, {"runs": 0, "passed": 0, "reason": None})
            told[key]["runs"] += 1
            told[key]["passed"] += verdict["outcome"] == "passed"
            told[key]["reason"] = told[key]["reason"] or verdict["reason"]
    return told


def main():
    """Print the answer of the mode asked for."""
    mode, *rest = sys.argv[1:]
    device = "cpu" if rest[-1] == "cpu" else "cuda:0"
    if mode == "graphs":
        result = graphs(int(rest[0]))
    else:
        result = times(rest[0], rest[1], device) if mode == "times" else mutations(rest[0], device)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
