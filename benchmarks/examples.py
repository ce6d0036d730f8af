"""Whether the frameworks' own example files pass: they are right by definition.

    python benchmarks/examples.py FOLDER [--framework NAME]... [--tag TAG]... [--newest] [--every]
        [--sample N] [--verbose]

FOLDER holds `framework/tag/…` with the yaml, json and sh files of that release as its repository has them
(`git archive TAG examples`). Each is judged with the framework's version beside it, as a user would paste
both; a folder that is no version (`untold`) is judged without one. A text that many releases have is judged
for the first and the last of them, which is where its keys come and go; `--every` judges it for each. A
text takes some 0.06 s of CPU: `--sample` draws some of them, the same each time.

Warned of and really wrong, by what reads them: axolotl's `mixtral_22.yml` (its DeepSpeed file lets an 8-bit
optimizer of bitsandbytes step on the host, which refuses below 0.50), its `lora-mps.yml` of 0.5 to 0.8
(`eval_table_max_new_tokens` was last read by 0.4.0), its `nemotron-h/*-qlora.yaml` of 0.16
(`use_cut_cross_entropy`, which no release reads) and its `falcon-h1-1b-qlora-cp.yaml` of 0.17 and 0.18 (a
slip of the pen: `context_parapllel_size`).
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from envdoctor.diagnosis import diagnose_facts
from envdoctor.errors import InputError
from envdoctor.facts import Facts
from envdoctor.findings import Finding, Severity
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.pastes.merge import merge_facts

KINDS = (".yaml", ".yml", ".json", ".sh")
STEP = 250
"""Texts after which `--verbose` tells how far it is."""


@dataclass(frozen=True)
class Example:
    """One file of a framework's release; `version` is None where none is told."""

    framework: str
    version: str | None
    path: Path


def read_examples(
    folder: Path, frameworks: Sequence[str], tags: Sequence[str], newest: bool
) -> Iterator[Example]:
    """Yield the example files under `folder`, of the chosen frameworks and tags."""
    for framework in sorted(p for p in folder.iterdir() if p.is_dir()):
        if frameworks and framework.name not in frameworks:
            continue
        found = sorted((t for t in framework.iterdir() if t.is_dir()), key=lambda t: _order(t.name))
        for tag in found[-1:] if newest else found:
            if tags and tag.name not in tags:
                continue
            version = tag.name if _version(tag.name) else None
            for path in sorted(p for p in tag.rglob("*") if p.suffix in KINDS and p.is_file()):
                yield Example(framework.name, version, path)


def at_ends(examples: Iterable[Example]) -> Iterator[Example]:
    """Yield each text under its name for the first and the last release that has it, once for both."""
    standing: dict[tuple[str, str, str], list[Example]] = {}
    for example in examples:
        text = example.path.read_bytes()
        name = example.path.name
        standing.setdefault((example.framework, name, hashlib.sha256(text).hexdigest()), []).append(example)
    for same in standing.values():
        yield from (same[0], same[-1]) if len(same) > 1 else same


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _order(text: str) -> Version:
    return _version(text) or Version("0")


class Judge:
    """Reads each text once and judges it for each release that has it."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.read = lru_cache(maxsize=4096)(self._read)

    def _read(self, digest: str, text: str, name: str) -> Facts | None:
        try:
            return parse_paste(text, name, self.matrix.lexicon, name)
        except InputError:
            return None

    def findings(self, example: Example) -> list[Finding]:
        """Return the errors and warnings for one file; none for an empty one."""
        text = example.path.read_text(encoding="utf-8", errors="replace")
        digest = hashlib.sha256(text.encode()).hexdigest()
        facts = self.read(digest, text, example.path.name) if text.strip() else None
        if facts is None:
            return []
        if example.version:
            stated = parse_paste(
                f"{example.framework}=={example.version}", "version.txt", self.matrix.lexicon
            )
            facts = merge_facts([stated, facts])
        found = diagnose_facts(facts, self.matrix, complete=False).findings
        return [f for f in found if f.severity is not Severity.NOTE]


def main() -> int:
    """Print what is found, by framework, and the shares; 1 when there is an error or more than 1 % warn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--framework", action="append", default=[])
    parser.add_argument("--tag", action="append", default=[])
    parser.add_argument("--newest", action="store_true", help="the newest tag of each framework alone")
    parser.add_argument("--every", action="store_true", help="each text for every release that has it")
    parser.add_argument("--sample", type=int, help="so many of them, drawn at random")
    parser.add_argument("--verbose", action="store_true", help="print every finding")
    args = parser.parse_args()
    judge = Judge(load_matrix())
    files: Counter[str] = Counter()
    wrong: Counter[tuple[str, Severity]] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    found = read_examples(args.folder, args.framework, args.tag, args.newest)
    examples = list(found if args.every else at_ends(found))
    drawn = random.Random(1).sample(examples, min(args.sample, len(examples))) if args.sample else examples
    for example in drawn:
        found = judge.findings(example)
        files[example.framework] += 1
        if args.verbose and not sum(files.values()) % STEP:
            print(f"# {sum(files.values())} read, {sum(wrong.values())} with a finding", flush=True)
        for severity in {f.severity for f in found}:
            wrong[example.framework, severity] += 1
        for finding in found:
            kinds[example.framework, f"{finding.severity.value} {finding.id}"] += 1
            if args.verbose:
                where = f"{example.framework} {example.version} {example.path.relative_to(args.folder)}"
                print(f"{where}: {finding.severity.value} {finding.id}: {finding.summary}", flush=True)
    return _print(files, wrong, kinds)


def _print(files: Counter[str], wrong: Counter[tuple[str, Severity]], kinds: Counter[tuple[str, str]]) -> int:
    for (framework, kind), count in sorted(kinds.items()):
        print(f"  {framework:14} {kind:36} {count}")
    print(f"{'framework':14} {'files':>7} {'errors':>7} {'warned':>7}")
    for framework, count in files.items():
        errors, warned = wrong[framework, Severity.ERROR], wrong[framework, Severity.WARNING]
        print(f"{framework:14} {count:7} {errors:7} {warned:7}")
    total = sum(files.values())
    errors = sum(n for (_, severity), n in wrong.items() if severity is Severity.ERROR)
    warned = sum(n for (_, severity), n in wrong.items() if severity is Severity.WARNING)
    print(f"{'all':14} {total:7} {errors:7} {warned:7} ({100 * warned / max(1, total):.2f} % warned)")
    return 1 if errors or warned * 100 > total else 0


if __name__ == "__main__":
    sys.exit(main())
