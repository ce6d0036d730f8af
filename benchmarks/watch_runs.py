"""Real runs on a real card under watch: what is said of each, and when; run where torch and a GPU are.

    python benchmarks/watch_runs.py [--kinds sane+stopped,leak,rows,neighbour,host] [--out DIR]

Each run is a child of `envdoctor watch`; kinds joined by + and sane runs stand side by side. Prints JSON;
recordings and answers are left in DIR. `--child KIND` is the child's side.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GIB = 1 << 30
RIGHT = {
    "sane": set(), "leak": {"OOM-FORETOLD"}, "host": {"HOST-LEAK"}, "rows": {"OOM-FORETOLD"},
    "neighbour": {"NEIGHBOUR", "OOM-FORETOLD"}, "stopped": {"HANG"},
}  # fmt: skip


def say(step: int, of: int | None, loss: float) -> None:
    """Say a step as trainers do."""
    print(f"{{'loss': {loss:.4f}, 'grad_norm': 0.5, 'learning_rate': 5e-05}}", flush=True)
    print(f"step {step}/{of}" if of else f"step {step}", flush=True)


def child_sane(number: int) -> None:
    """Transformers' Trainer on a small random model: logs, evaluations, saves."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    torch.manual_seed(number)
    sizes = {
        "hidden_size": 512 + 128 * (number % 4), "intermediate_size": 1536,
        "num_hidden_layers": 4 + number % 3, "num_attention_heads": 8, "num_key_value_heads": 8,
        "vocab_size": 16_000,
    }  # fmt: skip
    rng = random.Random(number)

    def row() -> dict[str, Any]:
        ids = torch.tensor([rng.randrange(16_000) for _ in range(256)])
        return {"input_ids": ids, "labels": ids}

    rows = [row() for _ in range(256)]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=150 + 40 * (number % 3),
        per_device_train_batch_size=4 + number, logging_steps=5, report_to=[],
        save_steps=60 if number % 2 else 10_000, save_total_limit=1,
        eval_strategy="steps" if number % 3 == 0 else "no", eval_steps=50, bf16=True,
        gradient_checkpointing=bool(number % 2), dataloader_num_workers=2 if number % 4 == 1 else 0,
    )  # fmt: skip
    model = LlamaForCausalLM(LlamaConfig(**sizes))
    Trainer(model, arguments, train_dataset=rows * 20, eval_dataset=rows[:64]).train()


def child_leak(number: int) -> None:
    """Losses kept with their graphs: the leak that everybody writes once."""
    import torch

    ballast = torch.empty(int((70 + 15 * number) * GIB), dtype=torch.uint8, device="cuda")
    layer = torch.nn.Linear(4096, 4096, device="cuda")
    kept = []
    for step in range(1, 2000):
        x = torch.randn(12_288 + 2048 * number, 4096, device="cuda")
        loss = layer(x).relu().pow(2).mean()
        loss.backward()
        kept.append(layer(x))
        time.sleep(0.2)
        say(step, None, float(loss))
    del ballast


def child_host(number: int) -> None:
    """Rows kept on the host, a GiB or less a step; ends by itself when two thirds are gone."""
    room = free_host() // GIB
    kept = []
    step_bytes = GIB // (1 + number % 2)
    for step in range(1, int(0.66 * room * GIB / step_bytes)):
        kept.append(bytearray(os.urandom(1 << 20)) * (step_bytes >> 20))
        time.sleep(0.05)
        say(step, None, 1.0)


def free_host() -> int:
    """Return what the host or its control group still gives, in bytes."""
    sys.path.insert(0, str(ROOT))
    from envdoctor.watch.host import Host

    return Host().read().room_bytes or 0


def child_rows(number: int) -> None:
    """Rows of all lengths; a long one comes late."""
    import torch

    torch.manual_seed(number)
    rng = random.Random(30 + number)
    ballast = torch.empty(int(86 * GIB), dtype=torch.uint8, device="cuda")
    head = torch.nn.Linear(1024, 64_000, device="cuda", dtype=torch.bfloat16)
    for step in range(1, 4000):
        tokens = 8_000 + int(rng.expovariate(1 / 8_000))
        x = torch.randn(tokens, 1024, device="cuda", dtype=torch.bfloat16)
        loss = head(x).float().logsumexp(-1).mean()
        loss.backward()
        head.zero_grad()
        time.sleep(0.05)
        say(step, 4000, float(loss))
    del ballast


def child_neighbour(number: int) -> None:
    """A steady run of ours; someone else comes to the card and grows (see `disturb`)."""
    import torch

    held = torch.empty(60 * GIB, dtype=torch.uint8, device="cuda")
    layer = torch.nn.Linear(4096, 4096, device="cuda")
    for step in range(1, 400):
        loss = layer(torch.randn(8192, 4096, device="cuda")).pow(2).mean()
        loss.backward()
        time.sleep(0.1)
        say(step, None, float(loss))
    del held


def child_intruder(number: int) -> None:
    """The neighbour: grows until the card is full, then stays for a while."""
    import torch

    kept = []
    try:
        while True:
            kept.append(torch.empty(GIB, dtype=torch.uint8, device="cuda"))
            time.sleep(0.25 + 0.1 * number)
    except torch.OutOfMemoryError:
        time.sleep(5)


def child_stopped(number: int) -> None:
    """Two ranks that add up; after a while one stops."""
    import torch.distributed as dist
    import torch.multiprocessing as mp

    port = 29_600 + number
    mp.spawn(rank_of, args=(port, number), nprocs=2, join=True)
    del dist


def rank_of(rank: int, port: int, number: int) -> None:
    """One rank."""
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    value = torch.ones(1024)
    for step in range(1, 400):
        if rank == 1 and step == 60 + 20 * number:
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.all_reduce(value)
        value /= value.max()
        time.sleep(0.1)
        if rank == 0:
            say(step, 400, 1.0)


def start(kind: str, number: int, folder: Path) -> subprocess.Popen[bytes]:
    """Start a run under watch."""
    name = folder / f"{kind}-{number}"
    watch = [
        "-m",
        "envdoctor",
        "watch",
        "--record",
        f"{name}.jsonl",
        "--format",
        "json",
        "-o",
        f"{name}.json",
    ]
    run = [sys.executable, __file__, "--child", kind, "--number", str(number)]
    words = [sys.executable, *watch, "--", *run]
    with open(f"{name}.log", "wb") as log:
        return subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def wait(child: subprocess.Popen[bytes], limit_s: float) -> int:
    """Wait for a run, and end it when it takes too long."""
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return -100


def judged(kind: str, number: int, folder: Path, status: int) -> dict[str, Any]:
    """Return what was said of a run."""
    path = folder / f"{kind}-{number}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    alarms = [line for line in lines if "alarm" in line]
    moments = [line for line in lines if "t" in line and "alarm" not in line and "end" not in line]
    steps = [m["step"] for m in moments if "step" in m]
    right = [a for a in alarms if a["alarm"] in RIGHT[kind]]
    at = next((m.get("step", 0) for m in reversed(moments) if right and m["t"] <= right[0]["t"]), None)
    last = steps[-1] if steps else 0
    wrong = [a["alarm"] for a in alarms if a["alarm"] not in RIGHT[kind]]
    return {
        "run": f"{kind}-{number}", "status": status, "steps": last,
        "named right": bool(right) if RIGHT[kind] else not alarms,
        "ahead": last - at if right and at is not None else None,
        "said": [a["text"] for a in right[:2]], "wrong alarms": wrong,
        "peak MiB": max((m["cards"][0][1] for m in moments if m.get("cards")), default=None),
        "ours known": any((m["cards"][0] + [None] * 4)[3] is not None for m in moments if m.get("cards")),
        "moments": len(moments),
    }  # fmt: skip


COUNTS = {"sane": 6, "stopped": 3, "leak": 2, "host": 1, "rows": 2, "neighbour": 2}
SIDE_BY_SIDE = {"sane", "stopped"}


def run_kind(kind: str, count: int, folder: Path, limit_s: float) -> list[dict[str, Any]]:
    """Run all of a kind; return what was said."""
    found = []
    if kind in SIDE_BY_SIDE:
        children = [start(kind, number, folder) for number in range(count)]
        if kind == "stopped":
            time.sleep(40)
            for child in children:
                os.killpg(child.pid, signal.SIGKILL)
        return [judged(kind, n, folder, wait(c, limit_s)) for n, c in enumerate(children)]
    for number in range(count):
        child = start(kind, number, folder)
        intruder = None
        if kind == "neighbour":
            time.sleep(12)
            intruder = subprocess.Popen(
                [sys.executable, __file__, "--child", "intruder", "--number", str(number)]
            )
        status = wait(child, limit_s)
        if intruder is not None:
            intruder.kill()
            intruder.wait()
        found.append(judged(kind, number, folder, status))
    return found


def main() -> int:
    """Run the kinds and print what was said."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default="sane+stopped,leak,rows,neighbour,host")
    parser.add_argument("--out", default="")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a run may take")
    parser.add_argument("--child")
    parser.add_argument("--number", type=int, default=0)
    args = parser.parse_args()
    if args.child:
        globals()[f"child_{args.child}"](args.number)
        return 0
    folder = Path(args.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    answer: dict[str, Any] = {"runs": []}
    for together in args.kinds.split(","):
        began = time.monotonic()
        kinds = together.split("+")
        with ThreadPoolExecutor(len(kinds)) as pool:
            for found in pool.map(lambda kind: run_kind(kind, COUNTS[kind], folder, args.limit), kinds):
                answer["runs"] += found
        answer[f"{together} s"] = round(time.monotonic() - began)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
