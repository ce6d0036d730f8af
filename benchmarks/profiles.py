"""The profile search's speed and growth, and chosen profiles run for real under budgets of one card.

    python benchmarks/profiles.py                       time of a search as cards and batch grow
    python benchmarks/profiles.py --plan PLAN           write the profiles of the budgets, one trial each
    python3 benchmarks/profiles.py --run PLAN RESULTS   run them on this card
    python benchmarks/profiles.py --judge RESULTS       hold what they took against budget and bound

A budget is a torch process's share of the card's memory: what a card of that size offers beside the CUDA
context. Reserved memory is compared with it, and with the predicted bound.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

GIB = 1 << 30
TRIAL = Path(__file__).parents[1] / "envdoctor" / "profile" / "trial.py"
STACK = {
    "torch": "2.11.0",
    "transformers": "5.17.0",
    "accelerate": "1.15.0",
    "bitsandbytes": "0.50.2",
    "peft": "0.21.2",
}
CASES: tuple[tuple[int, str, str, int, int | None, bool], ...] = (
    # GB, model, method, length, global batch (None: as none is asked for), Liger
    (80, "qwen2.5-7b", "lora", 2048, 24, False),
    (24, "qwen2.5-7b", "qlora", 2048, 24, False),
    (24, "llama-3.2-1b", "full", 1024, 48, False),
    (40, "qwen2.5-1.5b", "full", 1024, 48, True),
    (48, "mistral-7b", "lora", 2048, 24, True),
    (80, "llama-3.2-3b", "full", 1024, 48, False),
    (40, "llama-3.1-8b", "lora", 1024, 48, False),
    (24, "qwen2.5-1.5b", "lora", 2048, 24, False),
    (48, "qwen2.5-3b", "lora", 2048, 48, False),
    (80, "llama-3.1-8b", "lora", 4096, 12, True),
    (24, "mistral-7b", "lora", 1024, 48, False),
    (40, "gemma-2-2b", "lora", 1024, 48, False),
    (48, "glm-4-9b", "lora", 1024, 48, False),
    (80, "qwen3-4b", "full", 1024, 48, True),
    (24, "llama-3.1-8b", "qlora", 1024, 48, True),
    (40, "qwen2.5-7b", "qlora", 2048, 24, False),
    (48, "qwen2.5-0.5b", "full", 2048, 60, False),
    (80, "qwen2.5-3b", "lora", 2048, 48, False),
    (40, "qwen2.5-0.5b", "full", 4096, 24, True),
    (48, "llama-3.2-1b", "full", 2048, 60, False),
    (24, "qwen3-0.6b", "full", 2048, None, False),
    (24, "qwen3-1.7b", "lora", 2048, None, False),
    (48, "qwen3-8b", "lora", 2048, None, False),
    (80, "mistral-7b", "lora", 4096, None, False),
    (40, "llama-3.2-3b", "lora", 2048, None, False),
    (24, "llama-3.2-1b", "lora", 4096, None, True),
    (48, "qwen2.5-1.5b", "full", 2048, None, False),
    (80, "qwen2.5-3b", "full", 2048, None, True),
    (24, "qwen2.5-3b", "qlora", 2048, None, False),
    (40, "qwen3-8b", "qlora", 1024, None, False),
    (16, "qwen2.5-0.5b", "full", 1024, None, False),
    (80, "gemma-2-9b", "lora", 2048, None, False),
    (24, "gemma-2-2b", "lora", 2048, None, False),
    (48, "llama-3.1-8b", "lora", 2048, None, True),
    (32, "qwen3-4b", "lora", 1024, None, False),
    (40, "qwen3-1.7b", "full", 1024, None, False),
    (80, "qwen3-4b", "full", 2048, None, False),
    (16, "llama-3.2-3b", "qlora", 1024, None, False),
    (32, "mistral-7b", "qlora", 2048, None, True),
    (48, "phi-3.5-mini", "lora", 2048, None, False),
)


def plan(path: Path) -> None:
    """Write one trial a case: the chosen profile, its prediction, and the budget in bytes."""
    from envdoctor.facts import ComputeCapability
    from envdoctor.matrix import load_matrix
    from envdoctor.memory import find_shape
    from envdoctor.profile.choosing import constants_of, find_profile, write_profile
    from envdoctor.profile.emit.env import variables
    from envdoctor.profile.validate import plan_of, trial_request
    from envdoctor.profile.workload import Workload
    from envdoctor.target.cards import Card
    from envdoctor.target.stack import Stack

    matrix = load_matrix()
    trials = []
    for gigabytes, model, method, seq, batch, liger in CASES:
        card = Card(f"{gigabytes} GB", ComputeCapability(9, 0), gigabytes * GIB)
        stack = {**STACK, **({"liger-kernel": "0.8.5"} if liger else {})}
        asked = {"method": method, "seq": seq, "global_batch": batch}
        work = Workload(find_shape(model), (card,), stack=Stack(stack), model=model, **asked)
        found = find_profile(work, matrix)
        label = f"{gigabytes} GB {model} {method} {seq}{' liger' if liger else ''}"
        if found.choice is None or found.need is None:
            print(label, "nothing fits", found.notes)
            continue
        limit = work.room - constants_of(work, matrix).cuda_context
        trials.append(
            {
                "label": label,
                "budget_bytes": limit,
                "gigabytes": gigabytes,
                "request": {**trial_request(found, matrix), "steps": 2},
                "environment": variables(plan_of(found, matrix)),
                "profile": write_profile(found, "transformers", matrix).to_json(),
            }
        )
        share = found.need.device_bytes / work.room
        choice = found.choice
        print(f"{label}: batch {choice.batch}x{choice.grad_accum} ckpt {choice.grad_ckpt} bound {share:.0%}")
    path.write_text(json.dumps(trials))


def run(source: Path, out: Path, seconds: float) -> None:
    """Run the trials, as many at once as the card holds, until the time is up."""
    trials, deadline = json.loads(source.read_text()), time.monotonic() + seconds
    room, lock, results = Room(132), threading.Lock(), []

    def one(trial: dict[str, Any]) -> None:
        with room.hold(trial["gigabytes"]):
            started = time.monotonic()
            told = attempt(trial, deadline) if started < deadline - 25 else {"error": "no time left"}
        told |= {"seconds": round(time.monotonic() - started, 1), "label": trial["label"]}
        with lock:
            results.append({**trial, "told": told})
            print(json.dumps({k: v for k, v in told.items() if k != "versions"}), flush=True)
            out.write_text(json.dumps(results))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, trials))


class Room:
    """Gigabytes of the card that running trials hold; taken in order."""

    def __init__(self, total: int) -> None:
        self.free, self.changed = total, threading.Condition()

    def hold(self, size: int) -> Room.Held:
        """Wait for that much to be free, and hold it inside `with`."""
        return Room.Held(self, size)

    class Held:
        """What one trial holds."""

        def __init__(self, room: Room, size: int) -> None:
            self.room, self.size = room, size

        def __enter__(self) -> None:
            with self.room.changed:
                self.room.changed.wait_for(lambda: self.room.free >= self.size)
                self.room.free -= self.size

        def __exit__(self, *_: object) -> None:
            with self.room.changed:
                self.room.free += self.size
                self.room.changed.notify_all()


def attempt(trial: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Run one trial and return what it told, or its error."""
    environment = {**os.environ, **trial["environment"], "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "3"}
    command = [sys.executable, str(TRIAL), json.dumps(trial["request"])]
    limit = max(5.0, deadline - time.monotonic())
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": "timeout"}
    _, marker, rest = done.stdout.partition("TRIAL ")
    if not marker:
        return {"error": done.stderr[-600:]}
    told: dict[str, Any] = json.JSONDecoder().raw_decode(rest)[0]
    return told


def judge(path: Path) -> None:
    """Print, for each trial, whether it ran out, its share of the budget, and reserved beside the bound."""
    print(f"{'trial':42} {'ran out':>8} {'used':>6} {'reserved':>9} {'bound':>7} {'excess':>7}  why no more")
    for trial in json.loads(path.read_text()):
        told, memory = trial["told"], trial["profile"]["memory"]
        if "reserved_bytes" not in told:
            print(f"{trial['label']:42} {told['error'][-60:]!r}")
            continue
        reserved, bound = told["reserved_bytes"], memory["peak_reserved_bytes"]
        used = reserved / trial["budget_bytes"]
        why = " | ".join(trial["profile"]["notes"]) if used < 0.8 else ""
        print(
            f"{trial['label']:42} {'yes' if told['oom'] else 'no':>8} {used:6.0%} {reserved / GIB:9.2f}"
            f" {bound / GIB:7.2f} {bound / reserved - 1:7.1%}  {why}"
        )


def growth() -> None:
    """Print how long a search takes and how many settings it weighs, as cards and batch grow."""
    from envdoctor.facts import ComputeCapability
    from envdoctor.matrix import load_matrix
    from envdoctor.memory import find_shape
    from envdoctor.profile.choosing import find_profile
    from envdoctor.profile.workload import Workload
    from envdoctor.target.cards import Card
    from envdoctor.target.stack import Stack

    matrix, shape = load_matrix(), find_shape("qwen2.5-7b")
    stack = Stack({"liger-kernel": "0.8.5", "bitsandbytes": "0.50.2", "flash-attn": "2.8.3"})
    print(f"{'task':6} {'cards':>5} {'batch':>6} {'GB':>4} {'weighed':>8} {'predicted':>9} {'ms':>7}")
    for task in ("sft", "grpo"):
        for cards, batch in ((1, 16), (2, 64), (4, 64), (8, 64), (8, 512), (8, 4096)):
            for gigabytes in (80, 24, 8):
                card = Card("card", ComputeCapability(8, 9), gigabytes * GIB)
                work = Workload(shape, (card,) * cards, task, global_batch=batch, stack=stack)
                start = time.perf_counter()
                found = find_profile(work, matrix)
                taken = (time.perf_counter() - start) * 1000
                row = f"{task:6} {cards:5} {batch:6} {gigabytes:4} {found.considered:8} {found.predicted:9}"
                print(f"{row} {taken:7.0f}")


def whole_process(repeats: int = 5) -> None:
    """Print the median time of the whole command for eight cards."""
    command = [sys.executable, "-m", "envdoctor", "profile", "--model", "qwen2.5-7b", "--format", "json"]
    command += ["--gpu", "A100 80GB", "--gpus", "8", "--method", "auto", "--global-batch", "64"]
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        times.append(time.perf_counter() - start)
    print(f"whole process, 8 cards: {sorted(times)[repeats // 2] * 1000:.0f} ms (median of {repeats})")


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--run", type=Path, nargs=2)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--judge", type=Path)
    args = parser.parse_args()
    if args.plan:
        plan(args.plan)
    elif args.run:
        run(args.run[0], args.run[1], args.seconds)
    elif args.judge:
        judge(args.judge)
    else:
        growth()
        whole_process()


if __name__ == "__main__":
    main()
