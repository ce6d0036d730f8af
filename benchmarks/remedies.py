"""Following the first remedy with pins of every finding leaves no error that was not there.

    python benchmarks/remedies.py [FOLDER]...

Judges the recorded machines and pastes of the tests, and the cases of each FOLDER: one JSON a case with
`text`, or with `env`, `env_text`, `pip_list` and `error_text`. The pins are put in as an installer does: what
its command names exactly, else the newest that the pins admit, and what these pull along; a driver and a
Python at the lowest that is asked for.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts, from_json
from envdoctor.facts.names import normalise
from envdoctor.findings import Finding, Remedy
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.plan.following import apply_changes, new_errors
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.view import View
from envdoctor.solve.installer import Installations

TESTS = Path(__file__).parent.parent / "tests"
ASIDE = ("nvidia-driver", "python")
_EXACT = re.compile(r"(?<![\w.-])([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==(\d[\w.+!]*)")


def read_recorded(folders: Sequence[Path], matrix: Matrix) -> Iterator[tuple[str, Facts]]:
    """Yield the name and the facts of each recorded case."""
    for path in sorted((TESTS / "machines").glob("*.json")):
        yield path.name, from_json(json.loads(path.read_text(encoding="utf-8")))
    for path in sorted(p for p in (TESTS / "pastes" / "samples").rglob("*") if p.is_file()):
        yield path.name, parse_paste(path.read_text(encoding="utf-8"), "", matrix.lexicon, path.name)
    for path in sorted(p for folder in folders for p in folder.glob("*.json")):
        yield path.name, parse_paste(pasted(json.loads(path.read_text())), "", matrix.lexicon)


def pasted(case: dict[str, Any]) -> str:
    """Return a case as its user might have pasted it."""
    if "text" in case:
        return str(case["text"])
    told = "\n".join(f"{name}: {value}" for name, value in case.get("env", {}).items())
    return "\n\n".join([told, *(case.get(key, "") for key in ("env_text", "pip_list", "error_text"))])


def follow(facts: Facts, remedy: Remedy, matrix: Matrix) -> Facts | None:
    """Return the facts after a remedy; None where what its pins install is not known."""
    pins = {normalise(name): specifier for name, specifier in remedy.pins.items()}
    exact = {
        normalise(name): version.rstrip(".") for name, version in _EXACT.findall(" ".join(remedy.commands))
    }
    open_ = {n: s for n, s in pins.items() if n not in ASIDE and n not in exact}
    installations = Installations(facts, matrix, View(facts, matrix).complete)
    alone = any("--no-deps" in command for command in remedy.commands)
    asked = open_ | ({} if alone else {name: f"=={version}" for name, version in exact.items()})
    pulled = installations.foresee(asked) if asked else {}
    if pulled is None and open_:
        return None
    pulled = pulled or {}
    lowest = {n: _lowest(s) for n, s in pins.items() if n in ASIDE}
    return apply_changes(facts, {**exact, **pulled, **lowest})


def _lowest(specifier: str) -> str:
    return next(
        s.version for s in SpecifierSet(specifier) if s.operator in (">=", "==", "~=", "<=", "<", ">")
    )


def judge(name: str, facts: Facts, matrix: Matrix) -> tuple[int, int, int]:
    """Return how many first remedies were followed, how many break something, and how many are unknown."""
    followed = broken = unknown = 0
    _, before = run_checks(facts, matrix, RULES)
    for finding in diagnose_facts(facts, matrix).findings:
        remedy = next((r for r in finding.remedies if r.pins), None)
        if remedy is None:
            continue
        after = follow(facts, remedy, matrix)
        unknown += after is None
        followed += after is not None
        worse: Sequence[Finding] = new_errors(before, after, matrix) if after else ()
        broken += bool(worse)
        for error in worse:
            print(f"{name}: {finding.id}: {dict(remedy.pins)} {remedy.commands}: {error.summary}", flush=True)
    return followed, broken, unknown


def main() -> int:
    """Print each remedy that breaks something, and the counts; 1 when there is one."""
    matrix = load_matrix()
    cases = [judge(n, f, matrix) for n, f in read_recorded([Path(a) for a in sys.argv[1:]], matrix)]
    followed, broken, unknown = (sum(counts) for counts in zip(*cases, strict=True))
    print(f"{len(cases)} cases: {followed} remedies followed, {broken} lead to a new error", end="")
    print(f"; of {unknown} it is not known what they install")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
