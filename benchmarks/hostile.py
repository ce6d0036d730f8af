"""Hostile input in numbers: mutants read in process, counted by kind, failures gathered by their place.

    python -m benchmarks.hostile --mutants 500000 --seed 1

Ends with 1 when anything failed. What fails can be made again: `--seed` and `--only` name it.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HOSTILE = Path(__file__).parents[1] / "tests" / "hostile"
HANG_S = 60


class Hang(AssertionError):
    """A mutant that takes a minute of processor time."""


@contextmanager
def watched() -> Iterator[None]:
    """Raise Hang in what takes too long."""

    def ring(*_: object) -> None:
        raise Hang(f"not done after {HANG_S} s")

    signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def met(meet: Callable[[random.Random], str], seed: str) -> tuple[str, str]:
    """Return the kind of one mutant, or what went wrong with it."""
    try:
        with watched():
            return meet(random.Random(seed)), ""
    except AssertionError as error:
        return "failed", (text := str(error))[:200] + text[-200:]


def place_of(failure: str) -> str:
    """Return what tells failures apart: the kind, the exception and the line."""
    kind, _, rest = failure.partition(": ")
    return f"{kind}: {rest.partition(':')[0][:60]} {failure.rpartition(' at ')[2][-120:]}"


def main() -> int:
    """Meet the mutants and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0, help="end then, whatever is left")
    parser.add_argument("--kind", default="")
    parser.add_argument("--only", type=int, help="the number of one mutant")
    args = parser.parse_args()
    sys.path.insert(0, str(HOSTILE))
    from mutants import Room

    counts, failures = Counter[str](), Counter[str]()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder))
        for number in range(args.mutants) if args.only is None else (args.only,):
            kind, failure = met(lambda rng: room.meet(rng, args.kind), f"{args.seed} {number}")
            counts[kind] += 1
            if failure:
                kept = place_of(failure)
                failures[kept] += 1
                if failures[kept] == 1:
                    print(f"--seed {args.seed} --only {number}: {failure}", flush=True)
            if time.monotonic() - started > args.minutes * 60:
                break
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    seconds = time.monotonic() - started
    print(f"{sum(counts.values())} mutants in {seconds:.0f} s, peak RSS {rss} MiB: {dict(counts)}")
    for failure, count in failures.most_common(20):
        print(f"{count} x {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
