"""Mutants handed to the commands: whole runs of the command line, each in a process of its own.

    python -m benchmarks.hostile_commands --mutants 5000 --seed 1

Ends with 1 when one ended otherwise than with an answer or one line of error, took too long or too much.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HOSTILE = Path(__file__).parents[1] / "tests" / "hostile"
TESTS = HOSTILE.parent
sys.path.insert(0, str(HOSTILE))
MOST_MIB, SLOWEST_S, SOLVING_S = 300, 2.0, 20.0
FORMATS = ("text", "json", "markdown", "html", "sarif", "junit", "github")


def call(rng: random.Random, folder: Path) -> tuple[list[str], int, float]:
    """Write the files of one mutant; return the command, their size, and the seconds for each 100 kB."""
    from mutants import MANIFESTS, MODEL, REQUIREMENTS
    from mutating import mutated_bytes, mutated_json, mutated_text, written

    def put(name: str, content: str | bytes) -> int:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        return len(data)

    machines = sorted((TESTS / "machines").glob("*.json"))
    facts = json.loads(rng.choice(machines).read_text(encoding="utf-8"))
    samples = sorted((TESTS / "pastes" / "samples").iterdir())
    kind = rng.choice(("facts", "facts", "paste", "paste", "config", "profile", "pin", "bundle", "fleet"))
    format = rng.choice(FORMATS)
    if kind == "facts":
        size = put("a.json", written(mutated_json(facts, rng)))
        return ["diagnose", "--from", "a.json", "--format", format], size, SOLVING_S
    if kind == "paste":
        paste = rng.choice(samples)
        size = put(
            paste.name, mutated_bytes(mutated_text(paste.read_text(), rng).encode("utf-8", "replace"), rng)
        )
        return ["diagnose", "--from", paste.name, "--format", format], size, SOLVING_S
    if kind in ("config", "profile"):
        size = put("config.json", written(mutated_json(MODEL, rng)))
        verb = ["memory"] if kind == "config" else ["profile", "--for", "trl"]
        return [*verb, "--model", "config.json", "--gpu", "H100", "--format", format[:4]], size, SOLVING_S
    if kind == "pin":
        name = rng.choice([*MANIFESTS, "requirements.txt"])
        size = put(name, mutated_text(MANIFESTS.get(name, REQUIREMENTS), rng))
        return ["pin", "-r", name, "--offline", "--python-version", "3.12"], size, SOLVING_S
    if kind == "bundle":
        size = put("a.json", written(mutated_json(facts, rng)))
        size += put("train.log", mutated_text(rng.choice(samples).read_text(), rng))
        return ["bundle", "--preview", "--from", "a.json", "--log", "train.log"], size, SOLVING_S
    (folder / "nodes").mkdir(exist_ok=True)
    size = put("nodes/good.json", json.dumps(facts)) + put(
        "nodes/bad.json", written(mutated_json(facts, rng))
    )
    return ["fleet", "--facts", "nodes", "--format", rng.choice(("text", "json", "html"))], size, SOLVING_S


def main() -> int:
    """Run the commands and print what came of them."""
    from front import Front

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    args = parser.parse_args()
    counts, failures, most = Counter[str](), 0, 0.0
    slowest: dict[str, float] = {}
    started = time.monotonic()
    with Front() as front, tempfile.TemporaryDirectory() as place:
        for number in range(args.mutants):
            words, size, patience_s = call(random.Random(f"{args.seed} {number}"), Path(place))
            end = front.run(*words, cwd=Path(place))
            counts[words[0]] += 1
            most = max(most, end.rss_mib)
            slowest[words[0]] = max(slowest.get(words[0], 0.0), end.cpu_s)
            slow = end.cpu_s > patience_s * (1 + size // 100_000)
            if not end.is_clean or slow or end.rss_mib > MOST_MIB:
                failures += 1
                print(
                    f"--seed {args.seed}, {number}: {words}: {end._replace(out=b'', err=end.err[-300:])}",
                    flush=True,
                )
            if time.monotonic() - started > args.minutes * 60:
                break
    print(
        f"{sum(counts.values())} commands in {time.monotonic() - started:.0f} s, {failures} failed, "
        f"peak RSS {most:.0f} MiB: {dict(counts)}; slowest in s: "
        + ", ".join(f"{word} {seconds:.1f}" for word, seconds in slowest.items())
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
