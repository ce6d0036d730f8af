"""Following the first remedy with pins of every finding leaves no error and no warning that it does not tell.

    python benchmarks/remedies.py [FOLDER]...

Judges the recorded machines and pastes of the tests, and the cases of each FOLDER: one JSON a case with
`text`, or with `env`, `env_text`, `pip_list` and `error_text`. What is put in is what an installer would put
in (`envdoctor.plan.following.foresee`).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts, from_json
from envdoctor.findings import Severity
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.plan.following import apply_changes, foresee, new_findings
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.view import View
from envdoctor.solve.installer import Installations

TESTS = Path(__file__).parent.parent / "tests"


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


def judge(name: str, facts: Facts, matrix: Matrix) -> Counter[str]:
    """Count the first remedies by what follows from them; print those that bring an error or warning."""
    counts = Counter(cases=1)
    _, before = run_checks(facts, matrix, RULES)
    installations = Installations(facts, matrix, View(facts, matrix).complete)
    for finding in diagnose_facts(facts, matrix).findings:
        remedy = next((r for r in finding.remedies if r.pins), None)
        if remedy is None:
            counts["without"] += 1
            continue
        versions = foresee(remedy, installations)
        counts["unknown" if versions is None else "followed"] += 1
        worse = new_findings(before, apply_changes(facts, versions), matrix) if versions else ()
        untold = [f for f in worse if f.summary.rstrip(".") not in remedy.text]
        counts["errors"] += any(f.severity is Severity.ERROR for f in worse)
        counts["warnings"] += bool(worse) and all(f.severity is not Severity.ERROR for f in worse)
        counts["untold"] += bool(untold)
        for f in worse:
            said = "new" if f in untold else "told"
            print(f"{name}: {finding.id}: {dict(remedy.pins)} {remedy.commands}: {said} {f.severity.value}")
            print(f"    {f.id} ({f.certainty.value}): {f.summary}", flush=True)
    return counts


def main() -> int:
    """Print each remedy that breaks something, and the counts; 1 when there is one."""
    matrix = load_matrix()
    counts: Counter[str] = Counter()
    for name, facts in read_recorded([Path(a) for a in sys.argv[1:]], matrix):
        counts += judge(name, facts, matrix)
    cases, followed, errors, warnings = (counts[k] for k in ("cases", "followed", "errors", "warnings"))
    print(f"{cases} cases: {followed} first remedies followed, {errors} lead to a new error", end="")
    print(f", {warnings} to a new warning, {counts['untold']} to one that is not told", end="")
    print(f"; of {counts['unknown']} the effect is not known; {counts['without']} findings have none")
    return 1 if counts["errors"] or counts["untold"] else 0


if __name__ == "__main__":
    sys.exit(main())
