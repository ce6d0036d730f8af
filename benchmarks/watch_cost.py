"""What watching costs: the same work without and with watch by turns, in one run.

    python benchmarks/watch_cost.py [--pairs 5] [--seconds 5] [--gpu]

The child computes a fixed amount and says a step twenty times a second; its own clock tells the slowdown.
With `--gpu` it trains a small transformer on a card, the same steps each time.
Processor time and memory of the watch and its relay are read from /proc while it runs. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STARTED_S = 1.5
READ_EVERY_S = 1.5
"""Reading /proc costs as well, and only the watched child would bear it."""
TICKS = os.sysconf("SC_CLK_TCK")
CHILD = """
import sys, time
work, out = int(sys.argv[1]), sys.argv[2]
began = time.perf_counter()
for step in range(20 * 5):
    total = 0
    for i in range(work): total += i * i
    print(f"{step}%|x| {step}/100 [00:01<00:02]", end="\\r", file=sys.stderr, flush=True)
    print({"loss": 1.0 / (step + 1), "grad_norm": 0.5}, flush=True)
open(out, "w").write(f"{time.perf_counter() - began} {time.process_time()}")
"""
ON_A_CARD = """
import sys, time, torch
work, out = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
made = dict(batch_first=True, device="cuda", dtype=torch.bfloat16)
layer = torch.nn.TransformerEncoderLayer(2048, 16, 8192, **made)
model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
optim = torch.optim.AdamW(model.parameters(), fused=True)
rows = torch.randn(8, 1024, 2048, device="cuda", dtype=torch.bfloat16)
def train(count, steps):
    for step in range(steps):
        for _ in range(count):
            loss = model(rows).square().mean()
            loss.backward()
            optim.step()
            optim.zero_grad()
        print(f"{step}%|x| {step}/100 [00:01<00:02]", end="\\r", file=sys.stderr, flush=True)
        print({"loss": loss.item(), "grad_norm": 0.5}, flush=True)
    torch.cuda.synchronize()
train(5, 5)
began, cpu = time.perf_counter(), time.process_time()
train(work, 100)
open(out, "w").write(f"{time.perf_counter() - began} {time.process_time() - cpu}")
"""


def calibrated_on_a_card(seconds: float, folder: Path) -> int:
    """Return how many rounds of training make a step of the wanted length."""
    wall, _, _ = run(ON_A_CARD, 2, False, folder)
    return max(1, round(2 * seconds / wall))


def calibrated(seconds: float) -> int:
    """Return how many rounds of the child's inner loop make a step of the wanted length."""
    began = time.perf_counter()
    total = 0
    for i in range(2_000_000):
        total += i * i
    return int(2_000_000 * seconds / 100 / (time.perf_counter() - began))


def run(code: str, work: int, watched: bool, folder: Path) -> tuple[float, float, dict[str, float]]:
    """Return the child's seconds, its processor's seconds and what the watch took."""
    out = folder / "seconds"
    words = [sys.executable, "-m", "envdoctor", "watch", "--record", str(folder / "r.jsonl"), "--"]
    argv = [*(words if watched else []), sys.executable, "-c", code, str(work), str(out)]
    began = time.perf_counter()
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    took: dict[str, float] = {}
    first: dict[str, float] = {}
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    while child.poll() is None:
        while child.stdout.read(1 << 16):
            pass
        if watched:
            elapsed = time.perf_counter() - began
            due = elapsed > STARTED_S and elapsed - (took or first).get("elapsed_s", 0.0) > READ_EVERY_S
            now = cost(child.pid, elapsed) if due else {}
            if now:
                first = first or now
                took = {**now, "share": share_between(first, now)}
        time.sleep(0.1)
    child.stdout.close()
    wall, cpu = map(float, out.read_text().split())
    return wall, cpu, took


def cost(pid: int, elapsed: float) -> dict[str, float]:
    """Return processor share and memory of the watch and its relay."""
    try:
        own = Path(f"/proc/{pid}/cmdline").read_bytes()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        relays = [int(c) for c in children if Path(f"/proc/{c}/cmdline").read_bytes() == own]
        both = [pid, *relays]
        fields = [Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split() for p in both]
        cpu = sum(int(f[11]) + int(f[12]) for f in fields) / TICKS
        rss = sum(kib(p, "status", "VmRSS") for p in both)
        pss = sum(kib(p, "smaps_rollup", "Pss") for p in both)
    except (OSError, IndexError, ValueError):
        return {}
    return {"cpu_s": cpu, "elapsed_s": elapsed, "rss_mib": rss / 1024, "pss_mib": pss / 1024}


def share_between(first: dict[str, float], now: dict[str, float]) -> float:
    """Return the share of one core between two readings."""
    passed = now["elapsed_s"] - first["elapsed_s"]
    return (now["cpu_s"] - first["cpu_s"]) / passed if passed else 0.0


def kib(pid: int, file: str, name: str) -> int:
    """Return a figure in KiB of a file of /proc."""
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def main() -> int:
    """Measure in pairs and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--gpu", action="store_true", help="train on a card")
    args = parser.parse_args()
    ratios, cpu_ratios, costs = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        code = ON_A_CARD if args.gpu else CHILD
        work = calibrated_on_a_card(args.seconds, Path(folder)) if args.gpu else calibrated(args.seconds)
        for number in range(args.pairs):
            order = (False, True) if number % 2 else (True, False)
            seconds, cpu = {}, {}
            for watched in order:
                seconds[watched], cpu[watched], took = run(code, work, watched, Path(folder))
                if took:
                    costs.append(took)
            ratios.append(seconds[True] / seconds[False])
            cpu_ratios.append(cpu[True] / cpu[False])
    shares = [c["share"] for c in costs]
    answer: dict[str, Any] = {
        "slowdown, median of pairs": round(statistics.median(ratios), 4),
        "of the child's processor time": [round(ratio, 4) for ratio in cpu_ratios],
        "slowdowns": [round(ratio, 4) for ratio in ratios],
        "cores, once started": [round(share, 4) for share in shares],
        "pss MiB": round(max((c["pss_mib"] for c in costs), default=0), 1),
        "rss MiB, both": round(max((c["rss_mib"] for c in costs), default=0), 1),
        "seconds of a run": round(statistics.median(c["elapsed_s"] for c in costs), 1) if costs else None,
    }
    print(json.dumps(answer, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
