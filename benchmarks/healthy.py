"""Healthy environments have no error, and one package out of place is named.

    python benchmarks/healthy.py FOLDER [--sets 200] [--seed 1] [--jobs 1]

Draws names of the stack, days and Pythons, lets uv resolve them for Linux from wheels, and diagnoses what
`pip list` or `pip freeze` would show there, beside a card or without one: any error is false. Pairs that
are known to break though their metadata allow them (`BROKEN`) are left out and counted. Each is broken by one
package: a version that uv refuses beside the others, one left out that another requires, builds for different
CUDA side by side. A finding must name it. FOLDER keeps what uv said, so that it is asked once.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path

from packaging.version import Version

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Finding, Severity
from envdoctor.matrix import load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.pastes import parse_paste

NAMES = (
    *("torch", "transformers", "accelerate", "peft", "trl", "datasets", "bitsandbytes", "xformers", "vllm"),
    *("sglang", "liger-kernel", "torchvision", "torchaudio", "sentence-transformers", "optimum", "gradio"),
    *("tokenizers", "huggingface-hub", "safetensors", "torchao", "diffusers", "wandb", "numpy", "pandas"),
    *("ray", "llamafactory", "ms-swift", "unsloth", "evaluate", "lightning", "timm", "triton"),
    *("compressed-tensors", "outlines", "onnxruntime", "tensorboard", "fastapi", "openai", "scipy"),
)
DAYS = [f"{year}-{month:02}-15" for year in range(2023, 2027) for month in range(1, 13, 2)][4:-1]
PYTHONS = (
    *(("3.9", "2000", "2025-06"), ("3.10", "2000", "2026-09"), ("3.11", "2023-11", "3000")),
    *(("3.12", "2024-09", "3000"), ("3.13", "2025-09", "3000")),
)
"""Each with the days from and before which most of the stack has wheels for it."""
CARDS = ("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "NVIDIA L40S", "")
DRIVER = "580.95.05"
BROKEN = {
    "VLLM-TORCH": "a vllm whose old metadata names no upper torch, and whose wheel is linked against one",
    "XFORMERS-TORCH": "the same of xformers",
    "NUMPY2-TORCH": "torch below 2.3 was compiled for NumPy 1 and names no bound",
    "PAIR-DATASETS-PYARROW-EXTENSION-TYPE": "AttributeError at `import datasets`, seen: 2.14.6, pyarrow 22",
    "IMPORT-TORCHAO-TORCH": "torchao imports torch, requires it by no metadata, and none was resolved",
    "PAIR-TRL-PACKAGE-AVAILABLE": "trl DPOTrainer misses mergekit, seen: 0.24.0, transformers 5.6.0",
    "PAIR-OPENAI-HTTPX-PROXIES": "TypeError in `OpenAI()`, seen with 1.35.0 and httpx 0.28.1",
}
"""Rows, each with its source in the matrix, of pairs that break though no metadata forbids them, and why that
is believed: a set that resolves to one is not healthy, and is counted apart."""
HIDDEN = ("pip", "setuptools", "wheel", "distribute")
"""What `pip freeze` leaves out before Python 3.12."""
TRIES = 3
RECENT = 1100
"""Days back to which a version out of place may go."""
WHOLE = 45
"""Rows from which a listing is taken for whole."""
PATIENCE = 60
"""Seconds that uv may look for a set; a set that takes longer is not drawn."""
_DEPENDS = re.compile(r"([A-Za-z0-9][\w.-]*)\S*? depends on ([A-Za-z0-9][\w.-]*)")


@dataclass(frozen=True)
class Broken:
    """One package out of place: what is there instead of the healthy pins, None where nothing is."""

    kind: str
    name: str
    change: Mapping[str, str | None]


@dataclass
class Resolved:
    """What uv resolved for some names: the pins, who asked for each, and what breaks them."""

    names: list[str]
    day: str
    python: str
    card: str
    frozen: bool
    pins: dict[str, str]
    via: dict[str, list[str]]
    broken: list[Broken] = field(default_factory=list)


def resolve(lines: list[str], day: str, python: str) -> tuple[str, str]:
    """Return what uv answers to requirements, and its error text."""
    command = [str(Path(sysconfig.get_path("scripts")) / "uv"), "pip", "compile", "-", "-q", "--no-header"]
    command += ["--exclude-newer", day, "--python-version", python, "--only-binary", ":all:"]
    command += ["--python-platform", "x86_64-manylinux_2_35"]
    asked = "\n".join(lines)
    try:
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "", ""
    return (done.stdout, "") if done.returncode == 0 else ("", done.stderr)


def parse_pins(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the pins and their dependents that uv wrote."""
    pins: dict[str, str] = {}
    via: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if match := re.match(r"([a-z0-9][\w.-]*)==(\S+)", line):
            name = match[1]
            pins[name], via[name] = match[2], []
        elif name and (words := line.strip(" #").removeprefix("via").split()) and words[0] != "-r":
            via[name].append(words[0])
    return pins, via


def draw(chance: random.Random) -> Resolved | None:
    """Return a random set that resolves, or None."""
    names = chance.sample(NAMES, chance.randint(1, 4))
    day = chance.choice(DAYS)
    python = chance.choice([p for p, first, end in PYTHONS if first <= day < end])
    pins, via = parse_pins(resolve(names, day, python)[0])
    if not pins:
        return None
    found = Resolved(names, day, python, chance.choice(CARDS), chance.random() < 0.5, pins, via)
    found.broken = [b for b in (_misplaced(found, chance), _missing(found, chance), _mixed(found)) if b]
    return found


def _misplaced(found: Resolved, chance: random.Random) -> Broken | None:
    """Return a version that uv refuses beside the other pins for what they require."""
    snapshot = load_snapshot(load_matrix().folder)
    children = [name for name, parents in found.via.items() if parents]
    last = (date.fromisoformat(found.day) - date(1970, 1, 1)).days
    for name in chance.sample(children, min(TRIES, len(children))):
        package = snapshot.package(name)
        dated = zip(package.versions, package.days, strict=True) if package else ()
        others = [v for v, day in dated if last - RECENT < day <= last and v != found.pins[name]]
        if not others:
            continue
        version = chance.choice((others[0], others[-1], chance.choice(others)))
        lines = [f"{n}=={version if n == name else v}" for n, v in found.pins.items()]
        error = " ".join(resolve(lines, found.day, found.python)[1].split())
        if any(name in pair for pair in _DEPENDS.findall(error)) and "wheels" not in error:
            return Broken("misplaced", name, {name: version})
    return None


def _missing(found: Resolved, chance: random.Random) -> Broken | None:
    """Return a package left out that another one asked for."""
    children = [name for name, parents in found.via.items() if parents and name not in HIDDEN]
    if len(found.pins) < WHOLE:
        return None
    return Broken("missing", name, {name: None}) if children and (name := chance.choice(children)) else None


def _mixed(found: Resolved) -> Broken | None:
    """Return a companion of torch built for CUDA 12 beside a torch built for CUDA 11.8."""
    torch = found.pins.get("torch")
    other = next((name for name in ("torchvision", "torchaudio") if name in found.pins), None)
    if not torch or not other or not Version("2.1") <= Version(torch) < Version("2.7"):
        return None
    return Broken("mixed", other, {"torch": f"{torch}+cu118", other: f"{found.pins[other]}+cu124"})


def text_of(found: Resolved, pins: Mapping[str, str]) -> str:
    """Return what the commands of a report would print on such a machine."""
    lines = ["$ python --version", f"Python {found.python}.5"]
    if found.card:
        lines += ["$ nvidia-smi -L", f"GPU 0: {found.card} (UUID: GPU-5c2b1d0e-0000-0000-0000-000000000000)"]
        lines += [
            "$ nvidia-smi",
            f"| NVIDIA-SMI {DRIVER}    Driver Version: {DRIVER}    CUDA Version: 13.0 |",
        ]
    old = Version(found.python) < Version("3.12")
    rows = {"pip": "24.0", **({"setuptools": "65.5.0"} if old and "setuptools" not in pins else {}), **pins}
    if found.frozen:
        shown = {n: v for n, v in rows.items() if n not in HIDDEN or (not old and n != "pip")}
        return "\n".join([*lines, "$ pip freeze", *(f"{n}=={shown[n]}" for n in sorted(shown)), ""])
    width = max(map(len, rows)) + 1
    table = [f"{'Package':{width}} Version", f"{'-' * width} -------"]
    return "\n".join([*lines, "$ pip list", *table, *(f"{n:{width}} {rows[n]}" for n in sorted(rows)), ""])


def findings_in(text: str) -> list[Finding]:
    """Return what the diagnosis of a report finds."""
    matrix = load_matrix()
    facts = parse_paste(text, "", matrix.lexicon)
    return list(diagnose_facts(facts, matrix, complete=False).findings)


def is_named(name: str, finding: Finding) -> bool:
    """True when a finding's words name a package."""
    words = f"{finding.summary} {finding.cause} {' '.join(n for r in finding.remedies for n in r.pins)}"
    pattern = re.sub(r"[-_.]", "[-_.]", name)
    return re.search(rf"(?<![\w.-]){pattern}(?![\w-])", words, re.IGNORECASE) is not None


def read_sets(folder: Path, wanted: int, seed: int, jobs: int) -> Iterator[Resolved]:
    """Yield the sets, those kept in the folder first asked; `jobs` times at once."""
    folder.mkdir(parents=True, exist_ok=True)
    pool = ThreadPoolExecutor(jobs)  # draws on while what was drawn is judged
    drawn = pool.map(lambda number: _kept(folder, seed, number), range(wanted * 5))
    yield from islice(filter(None, drawn), wanted)
    pool.shutdown(cancel_futures=True)


def _kept(folder: Path, seed: int, number: int) -> Resolved | None:
    """Return one set as the folder has it, drawn where it has none."""
    path = folder / f"{seed}-{number:04}.json"
    if not path.exists():
        found = draw(random.Random(f"{seed} {number}"))
        path.write_text(json.dumps(asdict(found) if found else None))
    data = json.loads(path.read_text())
    return Resolved(**{**data, "broken": [Broken(**b) for b in data["broken"]]}) if data else None


def judge(found: Resolved, counts: Counter[str]) -> None:
    """Diagnose a set as it is and as it is broken; print what is wrong of it."""
    told = f"{found.names} {found.day} Python {found.python} {'freeze' if found.frozen else 'list'}"
    findings = [f for f in findings_in(text_of(found, found.pins)) if f.severity is not Severity.NOTE]
    if known := sorted({f.id for f in findings if f.severity is Severity.ERROR} & BROKEN.keys()):
        counts["unsound"] += 1
        print("LEFT OUT", told, known, flush=True)
        return
    counts["healthy"] += 1
    counts["false"] += any(f.severity is Severity.ERROR for f in findings)
    counts["warned"] += bool(findings)
    for f in findings:
        print("FALSE", told, f"\n   {f.severity.value} {f.id} ({f.certainty.value}): {f.summary}", flush=True)
    for broken in found.broken:
        changed = {n: v for n, v in {**found.pins, **broken.change}.items() if v is not None}
        findings = findings_in(text_of(found, changed))
        naming = [f for f in findings if is_named(broken.name, f)]
        named = bool(naming)
        counts[broken.kind] += 1
        counts[f"{broken.kind} named"] += named
        counts["noted"] += named and all(f.severity is Severity.NOTE for f in naming)
        if not named:
            print(
                "MISSED", told, broken, found.via[broken.name], [f.summary for f in findings][:3], flush=True
            )


def main() -> int:
    """Print each false finding and each break that is not named; 1 for an error or under 98 % named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", "-j", type=int, default=1, help="how often uv is asked at once")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    for found in read_sets(arguments.folder, arguments.sets, arguments.seed, arguments.jobs):
        judge(found, counts)
    kinds = ("misplaced", "missing", "mixed")
    total, named = (sum(counts[k + end] for k in kinds) for end in ("", " named"))
    print(f"{counts['unsound']} sets left out: they resolve, and a row with a source says that they break")
    warned = f"{counts['false']} with an error, {counts['warned']} with a warning"
    print(f"{counts['healthy']} healthy environments, {warned}")
    print(*(f"{k}: {counts[f'{k} named']} of {counts[k]} named" for k in kinds), sep="; ")
    noted = f"{counts['noted']} of them in a note, for the stack does not need them"
    print(f"broken: {named} of {total} named ({100 * named / max(1, total):.1f} %), {noted}")
    return 1 if counts["false"] or named < 0.98 * total else 0


if __name__ == "__main__":
    sys.exit(main())
