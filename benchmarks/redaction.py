"""Measures what redaction leaves: secrets of three published rule sets, identities, benign lines, time.

`python benchmarks/redaction.py --gitleaks DIR --trufflehog DIR --detect-secrets DIR` takes checkouts of the
rule sets; without one, the kinds of secrets are the rows' own. Every rule and every context is in one of two
halves by its hash: `held` was never looked at when the finders were made, `seen` may have been. `--show`
prints what is left of the seen half; `--commands N` sends N texts through each command that shares.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bundle"), str(ROOT / "benchmarks")]

from benign import benign  # noqa: E402
from published_rules import of_detect_secrets, of_gitleaks, of_trufflehog  # noqa: E402
from secret_grid import (  # noqa: E402
    Cell,
    Rule,
    bare,
    can_be_read,
    contexts,
    identities,
    labelled,
    rules,
)

from envdoctor.bundling import Redactor  # noqa: E402

READERS = {"gitleaks": of_gitleaks, "trufflehog": of_trufflehog, "detect_secrets": of_detect_secrets}


def is_held(name: str) -> bool:
    """Tell the half that was not looked at: by the hash of a rule's or a context's name."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def halves(found: Sequence[Rule]) -> Iterator[tuple[str, list[Rule], list[str], list[str]]]:
    """Yield each half's name, rules, and contexts with and without a label."""
    places = [*contexts("labelled"), *contexts("later")]
    for name in ("seen", "held"):
        held = name == "held"
        chosen = [rule for rule in found if is_held(rule.kind) == held]
        # Of the contexts that stood beside the finders from the start, none was held back.
        labels = contexts("later") if held else places
        alone = contexts("bare")
        yield name, chosen, *([c for c in known if is_held(c) == held] for known in (labels, alone))


def redact(text: str) -> str:
    """Redact one text by itself."""
    redactor = Redactor()
    redactor.learn(text)
    return redactor.redact(text)


def left_of(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells whose secret can still be read."""
    return [cell for cell in cells if can_be_read(cell.needle, redact(cell.text))]


def told(name: str, left: int, count: int) -> None:
    """Print one line of the table."""
    print(f"{name:<44} {left:>6} of {count:>6,}  {100 * left / max(1, count):.2f} %", flush=True)


def secrets(found: list[Rule], count: int, show: bool) -> None:
    """Print how many planted secrets are left in each half."""
    for half, chosen, labels, alone in halves(found):
        for name, cells in (
            ("with a context", labelled(count // 2, 1, chosen, labels)),
            ("bare", bare(count // 8, 2, chosen, alone)),
        ):
            drawn = list(cells)
            left = left_of(drawn)
            told(f"{half}: {name}, {len(chosen)} rules", len(left), len(drawn))
            if half == "seen" and show:
                print_left(left)


def print_left(left: list[Cell]) -> None:
    """Print by context and by rule what was left, with examples."""
    for by in ("context", "kind"):
        print("  ", Counter(getattr(cell, by) for cell in left).most_common(25))
    for cell in left[:60]:
        print(f"   {cell.kind} | {cell.context} | {cell.needle!r}\n      {redact(cell.text)!r:.300}")


def who_and_where(count: int, show: bool) -> None:
    """Print how many identities are left."""
    drawn = list(islice(identities(count // 80 + 1), count))
    left = [cell for cell in drawn if cell.needle in redact(cell.text)]
    told("identities", len(left), len(drawn))
    if show:
        print_left(left)


def needless(count: int, more: list[Path]) -> None:
    """Print how many benign lines were changed, drawn ones and those of files."""
    drawn = benign(count=count)
    told("benign lines changed", sum(redact(line) != line for line in drawn), len(drawn))
    for path in more:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        changed = [line for line in lines if redact(line) != line]
        told(f"changed in {path.name}", len(changed), len(lines))
        for line in changed[:200]:
            print(f"   {line.strip()[:150]!r}\n   {redact(line).strip()[:150]!r}")


def speed() -> None:
    """Print the time that a log of 1 MB takes, and that of its half."""
    r = random.Random(7)
    lines = [*benign(count=11_000), *(cell.text for cell in labelled(300))]
    r.shuffle(lines)
    text = "\n".join(lines)[:1_000_000]
    for part in (text[: len(text) // 2], text):
        start = time.perf_counter()
        redact(part)
        print(f"{len(part):,} characters: {time.perf_counter() - start:.2f} s")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in READERS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--benign", type=Path, nargs="*", default=[])
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--commands", type=int, default=0)
    args = parser.parse_args()
    found = [rule for name, read in READERS.items() if (folder := vars(args)[name]) for rule in read(folder)]
    secrets(found or list(rules()), args.count, args.show)
    who_and_where(args.count // 4, args.show)
    needless(args.count, args.benign)
    speed()


if __name__ == "__main__":
    main()
