"""Measures what redaction leaves: secrets of three published rule sets, identities, benign lines, time.

`python benchmarks/redaction.py --gitleaks DIR --trufflehog DIR --detect-secrets DIR` takes checkouts of the
rule sets; without one, the kinds of secrets are the rows' own. Every rule and every context is in one of two
halves by its hash: `held` was never looked at when the finders were made, `seen` may have been. `--show`
prints what is left of the seen half; `--commands N` sends N texts through each command that shares.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bundle"), str(ROOT / "benchmarks")]

from benign import benign  # noqa: E402
from published_rules import is_one_word, of_detect_secrets, of_gitleaks, of_trufflehog  # noqa: E402
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
from envdoctor.cli import main as run  # noqa: E402

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


def through_commands(chosen: list[Rule], count: int) -> None:
    """Print how many secrets are left of those that went through each command that shares."""
    drawn = labelled(count * 4, 4, chosen, [*contexts("labelled"), *contexts("later")])
    cells = [cell for cell in drawn if len(cell.text) < 2_000]
    lines = [cell for cell in cells if "\n" not in cell.text and "\r" not in cell.text]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = {
            "bundle --log": (cells[:count], 25, lambda batch: bundled(folder, batch)),
            "diagnose --share": (lines[:count], 10, lambda batch: diagnosed(folder, batch)),
            "probe --share": (lines[:count], 25, lambda batch: probed(folder, batch)),
            "fleet --share": (lines[:count], 25, lambda batch: asked(folder, batch)),
        }
        for way, (part, size, send) in ways.items():
            left = shown_before = 0
            for start in range(0, len(part), size):
                batch = part[start : start + size]
                before, shown = send(batch)
                shown_before += sum(can_be_read(cell.needle, before) for cell in batch)
                left += sum(can_be_read(cell.needle, shown) for cell in batch)
            told(f"{way} ({shown_before} would be shown)", left, len(part))


def bundled(folder: Path, batch: list[Cell]) -> tuple[str, str]:
    """Return the texts as one log, and what a bundle holds of it."""
    log = folder / "train.log"
    log.write_text("\n\n".join(cell.text for cell in batch), encoding="utf-8")
    (folder / "paste.txt").write_text("torch: 2.7.1\n")
    call = ["bundle", "--from", str(folder / "paste.txt"), "--log", str(log), "--preview", "--format", "json"]
    return log.read_text(encoding="utf-8"), "\n".join(json.loads(said(call))["contents"].values())


def diagnosed(folder: Path, batch: list[Cell]) -> tuple[str, str]:
    """Return what a diagnosis of error lines with the texts says, and what it shares."""
    log = folder / "error.log"
    head = 'Traceback (most recent call last):\n  File "a.py", line 1, in b\n'
    log.write_text("\n".join(f"{head}RuntimeError: {cell.text}" for cell in batch), encoding="utf-8")
    call = ["diagnose", "--from", str(log), "--format", "json"]
    return plain(said(call)), plain(said([*call, "--share"]))


def variables(batch: list[Cell]) -> dict[str, str]:
    """Return the texts as variables that facts keep."""
    return {f"HF_NOTE_{i}": cell.text for i, cell in enumerate(batch)}


def probed(folder: Path, batch: list[Cell]) -> tuple[str, str]:
    """Return what a probe tells with the texts in the environment, and what it shares."""
    os.environ.update({name: text for name, text in variables(batch).items() if "\0" not in text})
    try:
        return plain(said(["probe"])), plain(said(["probe", "--share"]))
    finally:
        for name in variables(batch):
            os.environ.pop(name, None)


def asked(folder: Path, batch: list[Cell]) -> tuple[str, str]:
    """Return the answer for nodes whose variables hold the texts, and the shared one."""
    facts = {"schema": "envdoctor.facts/1", "origin": "probe", "variables": variables(batch)}
    nodes = folder / "nodes"
    nodes.mkdir(exist_ok=True)
    for node in ("one", "two"):
        (nodes / f"{node}.json").write_text(json.dumps(facts), encoding="utf-8")
    call = ["fleet", "--facts", str(nodes), "--format", "json"]
    return plain(said(call)), plain(said([*call, "--share"]))


def said(call: list[str]) -> str:
    """Return what a command writes to standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run(call)
    return out.getvalue()


def plain(text: str) -> str:
    """Return the texts in JSON, as they are read."""
    found: list[str] = []

    def take(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for inner in value.items():
                take(list(inner))
        elif isinstance(value, list):
            for inner in value:
                take(inner)

    take(json.loads(text))
    return "\n".join(found)


def speed() -> None:
    """Print the time that a log of 1 MB takes, and that of its half."""
    r = random.Random(7)
    lines = [*benign(count=17_000), *(cell.text for cell in labelled(30))]
    r.shuffle(lines)
    text = "\n".join(lines)[:1_000_000]
    for part in (text[: len(text) // 2], text):
        start = time.process_time()
        redact(part)
        print(f"{len(part):,} characters: {time.process_time() - start:.2f} s of a core")


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
    given = [read(folder) for name, read in READERS.items() if (folder := vars(args)[name])]
    found = [rule for every in given for rule in every if is_one_word(rule)]
    found = found or list(rules())
    secrets(found, args.count, args.show)
    who_and_where(args.count // 4, args.show)
    needless(args.count, args.benign)
    if args.commands:
        through_commands(found, args.commands)
    speed()


if __name__ == "__main__":
    main()
