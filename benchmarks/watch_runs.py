"""Thirty real runs on real cards under watch: what is said of each, and when; run where torch and GPUs are.

    python benchmarks/watch_runs.py [--plan sane,exclusive,ranks] [--cards 2] [--out DIR]

Each run is a child of `envdoctor watch` (`benchmarks/watch_children.py`): transformers' Trainer and TRL's
SFTTrainer on a model of a published shape with random weights. A run has a card for itself, but ranks that
hang, which have all cards. Prints JSON; leaves recordings in DIR.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHILDREN = {
    "transformers": Path(__file__).with_name("watch_children.py"),
    "trl": Path(__file__).with_name("watch_children_trl.py"),
}
RIGHT = {
    "sane": set(), "leak": {"OOM-FORETOLD"}, "rows": {"OOM-FORETOLD"}, "neighbour": {"NEIGHBOUR"},
    "ranks": {"HANG"},
}  # fmt: skip
LONGEST_S = 150.0
"""What a run may take in all, its turn on the card waited for."""
MODEL = ("--model_name_or_path", "Qwen/Qwen2.5-0.5B", "--optim", "adamw_torch_fused", "--bf16", "true")
DTYPES = {"transformers": "float32", "trl": "bfloat16"}
"""Of the weights: both are measured, and told on the command line."""


@dataclass(frozen=True)
class Run:
    """One run: its kind and number, what its command says, and its seconds from the first step."""

    kind: str
    number: int
    trainer: str
    words: tuple[str, ...]
    limit_s: float
    inside: bool = False

    @property
    def name(self) -> str:
        """Its name among the recordings."""
        return f"{self.kind}-{self.number}-{self.trainer}"


def words(trainer: str, batch: int, length: int, steps: int, *more: str) -> tuple[str, ...]:
    """Return a command's settings."""
    told = ("--per_device_train_batch_size", batch, "--max_length", length, "--max_steps", steps)
    dtype = ("--dtype", DTYPES[trainer])
    return (*MODEL, *dtype, *map(str, told), "--gradient_checkpointing", "false", *more)


def sane(steps: int = 110) -> Iterator[Run]:
    """Ten: full and mixed lengths, evaluations, saves, loaders; half of the Trainer, half of TRL."""
    for number in range(10):
        trainer = "trl" if number in (1, 2, 4, 7, 9) else "transformers"
        length = 1024 if number % 2 == 0 else 1536
        yield Run("sane", number, trainer, words(trainer, 4, length, steps), 70.0, inside=True)


def exclusive() -> Iterator[Run]:
    """Six that keep their logits, six whose longest rows come late, four with a neighbour."""
    for number in range(6):
        trainer = "trl" if number % 2 else "transformers"
        leak = words(trainer, 1 + number % 3, 1024 if number < 4 else 1536, 2000)
        yield Run("leak", number, trainer, leak, 50.0)
        late = ("--at", str(45 + 10 * number))
        rows = words(trainer, 8 if number % 2 else 4, 16_384, 600, *late)
        yield Run("rows", number, trainer, rows, 60.0)
    for number in range(4):
        trainer = "trl" if number % 2 else "transformers"
        yield Run("neighbour", number, trainer, words(trainer, 8, 2048, 90), 45.0)


def ranks() -> Iterator[Run]:
    """Four of two ranks: rank 1 stopped, or lost in its loader."""
    for number in range(4):
        how, trainer = ("stop", "sleep")[number % 2], ("transformers", "trl")[number // 2]
        more = ("--at", str(40 + 10 * number), "--how", how)
        yield Run("ranks", number, trainer, words(trainer, 4, 512, 2000, *more), 90.0)


def command(run: Run, folder: Path, lock: str) -> list[str]:
    """Return the watch of a run."""
    name = folder / run.name
    watch = [sys.executable, "-m", "envdoctor", "watch", "--record", f"{name}.jsonl", "--format", "json"]
    launcher = [sys.executable]
    if run.kind == "ranks":
        port = str(29_600 + run.number)
        launcher += ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
    script = str(CHILDREN[run.trainer])
    child = [*launcher, script, run.kind, "--number", str(run.number), *run.words]
    locked = ["--card-lock", lock] if lock else []
    return [*watch, *(["--inside"] if run.inside else []), "-o", f"{name}.json", "--", *child, *locked]


def start(run: Run, folder: Path, card: int | None, lock: str = "") -> subprocess.Popen[bytes]:
    """Start a run under watch on a card, or on all."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    environment["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] = str(folder / f"{run.name}-pipe-")
    environment["TORCH_FR_DUMP_TEMP_FILE"] = str(folder / f"{run.name}-dump-")
    environment["NCCL_RAS_ADDR"] = f"127.0.0.1:{28_100 + run.number}"
    environment["OMP_NUM_THREADS"] = "2"
    if card is not None:
        environment["CUDA_VISIBLE_DEVICES"] = str(card)
    with open(folder / f"{run.name}.log", "wb") as log:
        return subprocess.Popen(
            command(run, folder, lock),
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )


def lines_of(run: Run, folder: Path) -> list[dict[str, Any]]:
    """Return what a recording holds so far."""
    path = folder / f"{run.name}.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def wait(run: Run, child: subprocess.Popen[bytes], folder: Path) -> int:
    """Wait for a run's end; one that hangs is ended once that was said and looked into, or after its time."""
    began, stepped = time.monotonic(), None
    while child.poll() is None:
        time.sleep(1.0)
        now, lines = time.monotonic(), lines_of(run, folder)
        if stepped is None and any("step" in line for line in lines):
            stepped = now
        if now - began > LONGEST_S or (stepped and now - stepped > run.limit_s):
            break
        if run.kind == "ranks" and sum(line.get("alarm") == "HANG" for line in lines) > 1:
            break
    if child.poll() is None:
        end(child)
    return child.wait()


def end(child: subprocess.Popen[bytes]) -> None:
    """End a run and the watch, the run first, so that the watch explains the end."""
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 0.0)):
        try:
            os.killpg(child.pid, number)
            child.wait(patience or None)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def judged(run: Run, folder: Path, status: int, seconds: float) -> dict[str, Any]:
    """Return what was said of a run."""
    lines = lines_of(run, folder)
    alarms = [line for line in lines if "alarm" in line]
    moments = [line for line in lines if "t" in line and not {"alarm", "end", "stacks", "log"} & line.keys()]
    right = [a for a in alarms if a["alarm"] in RIGHT[run.kind]]
    expected = next((line["expected"] for line in lines if "expected" in line), {})
    steps = [m["step"] for m in moments if "step" in m]
    at = next((m.get("step", 0) for m in reversed(moments) if right and m["t"] <= right[0]["t"]), None)
    ours = [card[3] for m in moments for card in m.get("cards", ()) if len(card) > 3 and card[3] is not None]
    inside = [m["reserved"] for m in moments if "reserved" in m]
    aside = next((i for i, m in enumerate(moments) if m.get("phase") == "evaluation"), len(moments))
    allocated = [m["alloc"] for m in moments[:aside] if "alloc" in m]
    return {
        "run": run.name, "status": status, "seconds": round(seconds), "steps": steps[-1] if steps else 0,
        "named right": bool(right) if RIGHT[run.kind] else not alarms,
        "ahead": steps[-1] - at if right and at is not None and steps else None,
        "ahead_s": round(moments[-1]["t"] - right[0]["t"], 1) if right and moments else None,
        "said": [f"{a['t']} s: {a['alarm']} {a['text']}" for a in alarms[:6]],
        "other alarms": [a["alarm"] for a in alarms if a["alarm"] not in RIGHT[run.kind]],
        "predicted MiB": expected.get("longest"), "predicted for": expected.get("what"),
        "peak MiB": max(ours, default=None), "reserved inside MiB": max(inside, default=None),
        "allocated inside before an evaluation MiB": max(allocated, default=None),
        "died": next((line["log"][:120] for line in lines if "out of memory" in line.get("log", "")), ""),
        "next": next_setting(folder / f"{run.name}.json"), "moments": len(moments),
    }  # fmt: skip


def next_setting(path: Path) -> str | None:
    """Return the next setting that the end's report gives."""
    try:
        told = json.loads(path.read_text())
        return str(told["next"]["summary"]) if told.get("next") else None
    except (OSError, ValueError):
        return None


def run_one(run: Run, folder: Path, card: int | None, lock: str = "") -> dict[str, Any]:
    """Run one and return what was said."""
    began = time.monotonic()
    child = start(run, folder, card, lock)
    intruder = follow_with_an_intruder(run, folder, card) if run.kind == "neighbour" else None
    status = wait(run, child, folder)
    if intruder is not None:
        intruder.kill()
        intruder.wait()
    answer = judged(run, folder, status, time.monotonic() - began)
    with open(folder / "results.jsonl", "a") as results:
        results.write(json.dumps(answer) + "\n")
    return answer


def follow_with_an_intruder(run: Run, folder: Path, card: int | None) -> subprocess.Popen[bytes]:
    """Start the neighbour once the run has made some steps."""
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline and not any(line.get("step", 0) > 5 for line in lines_of(run, folder)):
        time.sleep(0.5)
    words = [sys.executable, str(CHILDREN["transformers"]), "intruder", "--number", str(run.number)]
    return subprocess.Popen(words, env={**os.environ, "CUDA_VISIBLE_DEVICES": str(card or 0)})


def lock_of(folder: Path, card: int) -> Path:
    """Return the file that is locked while a run has a card for itself."""
    return folder / f"card-{card}.lock"


def on_a_card(runs: Sequence[Run], folder: Path, card: int) -> list[dict[str, Any]]:
    """Run one after the other on a card, the next one getting ready meanwhile."""
    lock = str(lock_of(folder, card))
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda run: run_one(run, folder, card, lock), runs))


def phase(name: str, folder: Path, cards: int, picked: Sequence[str]) -> list[dict[str, Any]]:
    """Run a phase or what is picked of it; of two joined by + the second gets ready meanwhile."""
    if "+" in name:
        first, then = name.split("+")
        with ThreadPoolExecutor(2) as pool:
            with contextlib.ExitStack() as locks:
                for card in range(cards):
                    fcntl.flock(locks.enter_context(open(lock_of(folder, card), "w")), fcntl.LOCK_EX)
                getting_ready = pool.submit(phase, then, folder, cards, picked)
                answers = phase(first, folder, cards, ())
            return [*answers, *getting_ready.result()]
    if name != "ranks":
        planned = sane() if name == "sane" else exclusive()
        runs = [run for run in planned if not picked or f"{run.kind}-{run.number}" in picked]
        with ThreadPoolExecutor(cards) as pool:
            parts = pool.map(lambda card: on_a_card(runs[card::cards], folder, card), range(cards))
            return [answer for part in parts for answer in part]
    together = list(ranks())
    with ThreadPoolExecutor(len(together)) as pool:
        return list(pool.map(lambda run: run_one(run, folder, None), together))


def main() -> int:
    """Run the plan and print what was said."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", default="sane,exclusive,ranks")
    parser.add_argument("--cards", type=int, default=2)
    parser.add_argument("--out", default="")
    parser.add_argument("--pick", default="", help="runs of a phase, such as rows-0,neighbour-1")
    args = parser.parse_args()
    folder = Path(args.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    for name in args.plan.split(","):
        began = time.monotonic()
        answers = phase(name, folder, args.cards, args.pick.split(",") if args.pick else ())
        right = sum(answer["named right"] for answer in answers)
        print(
            f"{name}: {right} of {len(answers)} named right in {time.monotonic() - began:.0f} s", flush=True
        )
        for answer in answers:
            print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
