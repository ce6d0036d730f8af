"""What attacks on every pattern cost: many more than the tests try, made from its parse tree.

    python benchmarks/patterns.py [--attacks 200] [--seed 0]

Promised: ten times the text costs at most twelve times as much. Exit 1 when a pattern breaks the promise.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "hostile")]

from attacks import attacks, looks_around  # noqa: E402
from collected_patterns import Collected, patterns_of_modules, patterns_of_rows  # noqa: E402
from growth import PROMISED, unit, worst  # noqa: E402


def main() -> int:
    """Measure and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--attacks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    gc.disable()
    one = unit()
    found = [p for p in (*patterns_of_rows(), *patterns_of_modules()) if isinstance(p, Collected)]
    looking = sum(bool(looks_around(p.pattern, p.flags)) for p in found)
    print(f"{len(found)} patterns, {looking} look around (bounded) and are none of RE2's", flush=True)
    tried, greatest, broken = 0, 0.0, 0
    for pattern in found:
        made = attacks(pattern.pattern, pattern.flags, args.attacks, args.seed)
        tried += len(made)
        if not made:
            continue
        cost, attack = worst(pattern, made, one)
        if cost.growth > PROMISED:
            broken += 1
            print(f"{pattern.place}: x{cost.growth:.0f}, {cost.units:.1f} units, {attack}", flush=True)
        else:
            greatest = max(greatest, cost.growth)
    print(f"{tried} attacks, {broken} patterns not linear; the others at most x{greatest:.1f} for ten times")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
