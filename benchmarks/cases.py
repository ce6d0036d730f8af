"""How often recorded failures are answered: root cause named early, a right fix offered, gone once mended.

    python benchmarks/cases.py FOLDER [--verbose]

FOLDER holds one JSON a case: `env` (name to version as known), `env_text`, `pip_list`, `error_text`, and
`expected` with `finding_keywords` and `pins`. Only what a user would have pasted reaches the tool.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Distribution, DriverVersion, Facts, Observed
from envdoctor.facts.names import normalise
from envdoctor.findings import Finding, Remedy
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.snapshot import Snapshot, load_snapshot
from envdoctor.pastes import parse_paste
from envdoctor.rules.ranges import range_satisfies

NAMED_SHARE = 0.5
"""A finding names the cause when it holds at least this share of the case's keywords."""
EARLY = 2


@dataclass(frozen=True)
class Score:
    """What one case showed; None where the case does not ask."""

    case: str
    category: str
    named: bool
    fixed: bool | None
    gone: bool | None
    found: tuple[str, ...]
    missing: tuple[str, ...]


def pasted(case: dict[str, Any]) -> str:
    """Return the report as its user might have pasted it."""
    lines = [f"{name}: {value}" for name, value in case["env"].items()]
    blocks = [
        "\n".join(lines),
        case.get("env_text", ""),
        case.get("pip_list", ""),
        case.get("error_text", ""),
    ]
    return "\n\n".join(block for block in blocks if block)


def text_of(finding: Finding) -> str:
    """Return all that a person reads of a finding."""
    remedies = " ".join(f"{r.text} {' '.join(r.commands)} {pins_text(r)}" for r in finding.remedies)
    evidence = " ".join(f"{e.fact} {e.value}" for e in finding.evidence)
    return f"{finding.id} {finding.summary} {finding.cause} {evidence} {remedies}"


def pins_text(remedy: Remedy) -> str:
    """Return a remedy's pins as words."""
    return " ".join(f"{name}{specifier}" for name, specifier in remedy.pins.items())


def holds(text: str, keyword: str) -> bool:
    """True when a keyword's words all stand in the text, whatever the punctuation between them."""
    flat = re.sub(r"[^a-z0-9.+_/<>=]+", " ", text.lower())
    return all(word in flat for word in re.sub(r"[^a-z0-9.+_/<>=]+", " ", keyword.lower()).split())


def is_named(findings: tuple[Finding, ...], keywords: list[str]) -> tuple[bool, tuple[str, ...]]:
    """True when one of the first findings holds enough keywords; and the keywords the best one lacks."""
    best: tuple[str, ...] = tuple(keywords)
    for finding in findings[:EARLY]:
        missing = tuple(k for k in keywords if not holds(text_of(finding), k))
        best = min(best, missing, key=len)
    return len(keywords) - len(best) >= NAMED_SHARE * len(keywords), best


def offers(findings: tuple[Finding, ...], pins: dict[str, str], snapshot: Snapshot) -> bool:
    """True when some remedy pins one of the expected packages inside what was confirmed to work."""
    return any(
        pin_agrees(name, remedy.pins[name], expected, snapshot)
        for finding in findings
        for remedy in finding.remedies
        for name, expected in pins.items()
        if name in remedy.pins
    )


def pin_agrees(name: str, offered: str, expected: str, snapshot: Snapshot) -> bool:
    """True when what an installer would choose under the offered pin meets the confirmed fix."""
    if range_satisfies(offered, expected) is True:
        return True
    package = snapshot.package(name)
    inside = [v for v in package.versions if SpecifierSet(offered).contains(v)] if package else []
    return bool(inside) and SpecifierSet(expected).contains(inside[-1])


def mended(facts: Facts, pins: dict[str, str]) -> Facts:
    """Return the facts with the expected pins applied and the error's text gone."""
    distributions = dict(facts.environment.distributions)
    driver, python = facts.driver, facts.environment.python
    for name, specifier in pins.items():
        if name == "nvidia-driver":
            floor = next(iter(SpecifierSet(specifier))).version
            driver = replace(driver, version=Observed(DriverVersion.parse(floor), "applied"))
        elif name == "python":
            python = Observed(_inside(specifier), "applied")
        else:
            distributions[name] = Distribution(name, "applied", specifier=specifier)
    environment = replace(facts.environment, distributions=distributions, python=python)
    return replace(facts, environment=environment, driver=driver, symptoms=())


def _inside(specifier: str) -> str:
    return next(v for v in ("3.10", "3.9", "3.11", "3.12", "3.8") if SpecifierSet(specifier).contains(v))


def judge(case: dict[str, Any], matrix: Matrix) -> Score:
    """Diagnose one case and hold the answer against what was confirmed."""
    expected = case["expected"]
    facts = parse_paste(pasted(case), "", matrix.lexicon)
    findings = diagnose_facts(facts, matrix).findings
    named, missing = is_named(findings, expected["finding_keywords"])
    pins = {normalise(name): specifier for name, specifier in (expected.get("pins") or {}).items()}
    fixed = offers(findings, pins, load_snapshot(matrix.folder)) if pins else None
    gone: bool | None = None
    if pins and findings:
        first = findings[0].id
        gone = first not in {f.id for f in diagnose_facts(mended(facts, pins), matrix).findings}
    return Score(case["id"], case["category"], named, fixed, gone, tuple(f.id for f in findings), missing)


def share(values: list[bool]) -> str:
    """Return `x of y (z %)`."""
    return f"{sum(values)} of {len(values)} ({100 * sum(values) / max(1, len(values)):.0f} %)"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="show every case, not only what fell short")
    args = parser.parse_args()
    matrix = load_matrix()
    cases = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(args.folder.glob("*.json"))]
    scores = [judge(case, matrix) for case in cases]
    for score in scores:
        if args.verbose or not score.named or score.fixed is False or score.gone is False:
            marks = f"named={score.named!s:5} fixed={score.fixed!s:5} gone={score.gone!s:5}"
            print(f"{score.case:32} {marks} lacks={list(score.missing)} found={list(score.found[:4])}")
    print(f"root cause among the first {EARLY} findings: {share([s.named for s in scores])}")
    print(f"a right fix among the remedies:        {share([s.fixed for s in scores if s.fixed is not None])}")
    print(f"finding gone after the expected pins:  {share([s.gone for s in scores if s.gone is not None])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
