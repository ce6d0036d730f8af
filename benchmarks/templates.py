"""What is answered to errors that nobody has posted: messages drawn from the releases on record.

    python benchmarks/templates.py [--count 600] [--held] [--list KIND]

The newest releases' messages that a user can meet are drawn by library, filled in, and told as the end of
a traceback without versions. Each third by hash is held back: judged only with `--held`, and never listed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding
from envdoctor.matrix import load_matrix
from envdoctor.matrix.atlas import HOLE, WARNINGS, _block, load_atlas
from envdoctor.pastes import parse_paste

LIBRARIES = (
    *("vllm", "sglang", "torch", "transformers", "accelerate", "peft", "trl", "deepspeed", "bitsandbytes"),
    *("flash-attn", "xformers", "llamafactory", "axolotl", "ms-swift", "unsloth", "unsloth-zoo", "datasets"),
    *("huggingface-hub", "ray", "gptqmodel", "compressed-tensors", "torchao", "optimum", "triton", "lm-eval"),
    *("safetensors", "tokenizers", "liger-kernel", "lightning", "sentence-transformers", "autoawq"),
)
NEWEST = 3
"""Releases of each library, the newest, whose messages are drawn."""
_INNER = re.compile(
    r"(?i)internal|should (?:not|never)|unreachable|this is a bug|^invalid state|not implemented in subclass|"
    r"subclass(?:es)? must|must implement|^unknown (?:op|node)|please (?:report|file|open)"
)
_INNER_FILES = re.compile(
    r"(?i)test|benchmark|/_dynamo/|/_inductor/|/fx/|/_export/|onnx/|/jit/|functorch|_refs|_decomp|_meta_|/ao/|"
    r"serve/_private|autoscaler|rllib|/tune/|/dashboard/|tool_parser|/export/|_higher_order|/package/|_subclasses"
)
_KINDS = frozenset(
    [
        "ValueError",
        "RuntimeError",
        "ImportError",
        "NotImplementedError",
        "TypeError",
        "KeyError",
        "OSError",
        "AssertionError",
        "EnvironmentError",
        "ModuleNotFoundError",
        "AttributeError",
        "FileNotFoundError",
        "Exception",
        "error",
        "MisconfigurationException",
        "VLLMValidationError",
        "ArgumentTypeError",
        "TimeoutError",
        "ConnectionError",
    ]
)
_VERSION_AFTER = re.compile(r"(?i)(?:version|>=|==|<=|[a-z]\s?[<>])\s*[\"'`(]?$")
_NUMBER_AFTER = re.compile(
    r"(?i)(?:\bgot|than|equal to|size|length|rank|dim(?:ension)?s?|count|number|of|=|:|is|by|to|at least|"
    r"at most|\()\s*$"
)


@dataclass(frozen=True)
class Drawn:
    """A message with where it stands."""

    library: str
    kind: str
    file: str
    function: str
    guard: str
    template: str

    @property
    def is_held(self) -> bool:
        """True for each third."""
        return zlib.crc32(f"held {self.library} {self.template}".encode()) % 3 == 0


def population(folder: Path) -> Iterator[Drawn]:
    """Yield the messages of the newest releases that a user can meet."""
    atlas = load_atlas(folder)
    assert atlas
    for number in range(len(atlas.starts) - 1):
        for template, library, kind, file, function, guard, spans in map(json.loads, _block(atlas, number)):
            name, versions = atlas.libraries[int(library)]
            drawn = Drawn(name, str(kind), str(file), str(function), str(guard), str(template))
            newest = max(last for _, last in spans) >= len(versions) - NEWEST
            if newest and name in LIBRARIES and is_met(drawn):
                yield drawn


def is_met(drawn: Drawn) -> bool:
    """True for a message of several words that is no check of a library upon itself."""
    words = re.findall(r"[A-Za-z]{2,}", drawn.template)
    least = 6 if drawn.kind == "AssertionError" else 4
    return (
        drawn.kind in _KINDS - WARNINGS
        and len(words) >= least
        and not _INNER.search(drawn.template)
        and not _INNER_FILES.search(drawn.file)
    )


def draw(all_of_them: list[Drawn], count: int, seed: int) -> list[Drawn]:
    """Return messages by library, each with the root of its share."""
    by_library: dict[str, list[Drawn]] = {}
    for one in sorted(all_of_them, key=lambda d: (d.library, d.template, d.file)):
        by_library.setdefault(one.library, []).append(one)
    whole = sum(math.sqrt(len(group)) for group in by_library.values())
    chance = random.Random(seed)
    drawn: list[Drawn] = []
    for _, group in sorted(by_library.items()):
        wanted = min(len(group), max(4, round(count * math.sqrt(len(group)) / whole)))
        drawn.extend(chance.sample(group, wanted))
    return drawn


def filled(template: str) -> str:
    """Return a message with its holes filled by what stands around them."""
    parts = template.split(HOLE)
    text = parts[0]
    for part in parts[1:]:
        text += _filling(text, part) + part
    return text


def _filling(before: str, after: str) -> str:
    if _VERSION_AFTER.search(before):
        return "0.9.2"
    if before.endswith(("'", '"', "`")):
        return "custom_thing"
    if before.endswith("[") or after.startswith("]"):
        return "'one', 'two'"
    return "7" if _NUMBER_AFTER.search(before) else "custom_thing"


def told(one: Drawn) -> str:
    """Return the end of a traceback that raises a message."""
    site = "/opt/venv/lib/python3.11/site-packages"
    text = filled(one.template)
    if one.kind == "error" or (one.library == "triton" and one.kind == "compiled"):
        return f"$ python run.py --config a.yaml\nusage: run.py [-h] [--config C]\nrun.py: error: {text}\n"
    return (
        "Traceback (most recent call last):\n"
        '  File "/home/me/work/run.py", line 41, in <module>\n'
        "    main()\n"
        f'  File "{site}/{one.file}", line 217, in {one.function.rpartition(".")[2] or "<module>"}\n'
        f"    raise {one.kind}(\n"
        f"{one.kind}: {text}\n"
    )


def answer(findings: tuple[Finding, ...]) -> str:
    """Return the kind of an answer."""
    shown = [f for f in findings if f.severity != "note"]
    if not shown:
        return "e nothing"
    first = shown[0]
    if first.id == "UNEXPLAINED-ERROR":
        return "d unexplained"
    if first.id == "RAISED-BY-LIBRARY":
        return "b origin, guard" if " condition there: " in first.cause else "c origin alone"
    return f"a {first.id}"


def main() -> int:
    """Judge the sample and print how it was answered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--list", default="")
    arguments = parser.parse_args()
    folder = Path(__file__).parent.parent / "matrices"
    matrix = load_matrix()
    everything = list(population(folder))
    sample = draw(everything, arguments.count, arguments.seed)
    print(f"{len(everything)} messages, {len(sample)} drawn, {sum(d.is_held for d in sample)} held back")
    counts: Counter[str] = Counter()
    for number, one in enumerate(d for d in sample if d.is_held == arguments.held):
        text = told(one)
        facts = parse_paste(text, "", matrix.lexicon)
        diagnosis = diagnose_facts(facts, matrix)
        kind = answer(diagnosis.findings)
        counts[kind[0] + (" rule" if kind[0] == "a" else kind[1:])] += 1
        if arguments.list and not arguments.held and kind[0] in arguments.list:
            print(
                f"--- {number} [{kind}] {one.library} {one.kind} {one.file}:{one.function} WHEN {one.guard}"
            )
            print("    " + filled(one.template).replace("\n", "\n    "))
            for finding in diagnosis.findings[:2]:
                print(f"      > {finding.id} {finding.certainty}: {finding.cause[:300]}")
                for remedy in finding.remedies[:3]:
                    print(f"        - {remedy.text[:160]} {list(remedy.commands)}")
    for kind, number in sorted(counts.items()):
        print(f"{kind:20} {number:4}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
