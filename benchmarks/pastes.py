"""How long reading a paste takes: 100 kB, 1 MB and 10 MB of several kinds of log; and 10,000 mutated reports.

    python benchmarks/pastes.py [--mutants 10000]

Times are of the processor, best of three. Promised: a training log of 1 MB under 0.25 s (hostile ones 0.5 s),
ten times the input at most twelve times the time,
no mutant over one second for 100 kB. Exit 1 when a promise is not kept.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "pastes")]

from test_hostile import SAMPLES, mutate  # noqa: E402

from envdoctor.matrix.load import load_matrix  # noqa: E402
from envdoctor.pastes import parse_paste, read_files  # noqa: E402

SIZES = (100_000, 1_000_000, 10_000_000)
LEXICON = load_matrix().lexicon
WORDS = sorted({word for sample in SAMPLES for word in sample.split() if len(word) < 40})


def training_line(chance: random.Random, number: int) -> str:
    """Return a line of a training log."""
    return chance.choice(
        [
            f"{{'loss': {chance.random():.4f}, 'grad_norm': {chance.random():.5f}, 'epoch': {number}}}",
            f" {number % 100}%|████      | {number}/10000 [{number % 60:02d}:20<01:20,  1.2s/it]",
            f'  File "/lib/python3.10/site-packages/torch/nn/module.py", line {number}, in _call',
            f"INFO 05-01 12:00:{number % 60:02d} metrics.py:334] Avg throughput: {number}.5 tokens/s",
            f"[2024-05-01 12:00:{number % 60:02d},123] [INFO] [config.py:{number}:print]   zero ... True",
        ]
    )


def words_line(chance: random.Random, number: int) -> str:
    """Return a line that resembles no other."""
    return " ".join(chance.choices(WORDS, k=chance.randint(3, 20)))


def error_line(chance: random.Random, number: int) -> str:
    """Return a line in which a signature's needle stands."""
    return f"{chance.choice(LEXICON.symptoms).needles[0]} {number} {chance.choice(WORDS)}"


def text_of(line: Callable[[random.Random, int], str], size: int) -> str:
    """Return a report followed by lines up to `size` characters."""
    chance = random.Random(size)
    parts = [SAMPLES[0]]
    length = len(parts[0])
    while length < size:
        parts.append(line(chance, len(parts)))
        length += len(parts[-1]) + 1
    return "\n".join(parts)


def seconds(text: str) -> float:
    """Return the best of three processor times of reading `text`."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        parse_paste(text, "", LEXICON)
        best = min(best, time.process_time() - start)
    return best


def measure_sizes() -> bool:
    """Print the times by kind and size; return whether the promises are kept."""
    kept = True
    for line in (training_line, words_line, error_line):
        times = [seconds(text_of(line, size)) for size in SIZES]
        kept &= times[1] <= (0.25 if line is training_line else 0.5) and times[2] <= 12 * times[1]
        shown = "  ".join(f"{size // 1000:>6} kB {t:6.3f} s" for size, t in zip(SIZES, times, strict=True))
        print(f"{line.__name__:<14} {shown}  x{times[2] / times[1]:.1f}")
    return kept


def measure_mutants(count: int) -> bool:
    """Print the worst of `count` mutated reports; return whether it stays under a second for 100 kB."""
    worst = (0.0, -1)
    for seed in range(count):
        chance = random.Random(seed)
        text = mutate(chance.choice(SAMPLES), chance)
        start = time.process_time()
        parse_paste(text, "", LEXICON)
        worst = max(worst, ((time.process_time() - start) / max(1.0, len(text) / 100_000), seed))
    print(f"{count} mutants, none crashed; worst {worst[0]:.3f} s per 100 kB (seed {worst[1]})")
    return worst[0] < 1


def measure_huge() -> bool:
    """Print time and memory of a log of 100 MB; return whether the process stayed under 128 MiB."""
    block = "\n".join(training_line(random.Random(n), n) for n in range(10_000)).encode()
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        for _ in range(100_000_000 // len(block)):
            file.write(block)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        read_files([file.name], LEXICON)
        taken = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"100 MB log: {taken:.2f} s, {grown:.0f} MiB more memory")
    return grown < 128


def main() -> int:
    """Measure and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=10_000)
    args = parser.parse_args()
    results = [measure_huge(), measure_sizes(), measure_mutants(args.mutants)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
