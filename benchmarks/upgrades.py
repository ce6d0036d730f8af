"""Measures the diagnosis of upgrades whose outcome is known: conflicts, health, and crashes explained.

    python benchmarks/upgrades.py CASES.jsonl.gz [--show]

Each line of the file is an environment after an upgrade: `case` (`project/package/version`), `freeze`,
`traceback`, `pip_conflicts`, `crash`, `pip_conflict`. A crash counts as explained when a finding answers its
error line with a range of releases that leaves the failing one out, and in which no release of that package
crashed the same project in the same way; healthy releases of that package must not all lie outside.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import Version

from envdoctor.diagnosis import diagnose_facts
from envdoctor.findings import Certainty, Diagnosis, Finding, Severity
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.pastes import parse_paste
from envdoctor.rules.ranges import version_satisfies

CHECKED = (("huggingface-hub", "0.16.4", "tqdm", "4.35.0"),)
"""Two releases each that `pip check` calls a conflict, where what an installation printed did not tell it."""
_NAME = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


@dataclass
class Case:
    """One upgrade, what happened, and what was said of it."""

    name: str
    freeze: str
    traceback: str
    crash: bool
    conflicts: Sequence[str]
    diagnosis: Diagnosis = field(init=False)

    @property
    def upgraded(self) -> tuple[str, str, str]:
        """Project, package and version."""
        project, package, version = self.name.split("/")
        return project, package, version

    @property
    def tensorflow(self) -> bool:
        """True for a project that stands on TensorFlow."""
        return re.search(r"^tensorflow(-gpu)?==", self.freeze, re.MULTILINE) is not None

    @property
    def last(self) -> str:
        """The error's last line, without what differs from run to run."""
        lines = [
            line for line in self.traceback.strip().splitlines() if "Error" in line or "Exception" in line
        ]
        return re.sub(r"\(/.*|/home/\S+", "", lines[-1]) if lines else ""

    @property
    def conflicting(self) -> bool:
        """True where the installation told a conflict, or `pip check` tells one of what it put in."""
        there = self.versions
        return bool(self.conflicts) or any(there.get(a) == v and there.get(b) == w for a, v, b, w in CHECKED)

    @property
    def versions(self) -> Mapping[str, str]:
        """What is installed."""
        return {re.sub(r"[-_.]+", "-", n).lower(): v for n, v in _NAME.findall(self.freeze)}


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file."""
    with gzip.open(path, "rt") as stream:
        rows: Iterable[dict[str, Any]] = map(json.loads, stream)
        return [
            Case(r["case"], r["freeze"], r["traceback"] or "", r["crash"], r["pip_conflicts"] or [])
            for r in rows
        ]


def judge(case: Case, matrix: Matrix) -> None:
    """Diagnose a case as a paste of its freeze and its traceback."""
    text = f"```\n{case.freeze}\n```\n\n```\n{case.traceback}\n```\n"
    facts = parse_paste(text, "", matrix.lexicon)
    case.diagnosis = diagnose_facts(facts, matrix, complete=False)


def explaining(case: Case, others: Sequence[Case]) -> Finding | None:
    """Return the finding that explains a crash with a range that works, or None."""
    facts = case.diagnosis.facts
    symptoms = {s for error in facts.errors for s in error.symptoms} | {s.id for s in facts.symptoms}
    for finding in case.diagnosis.findings:
        answers = bool(set(finding.explains) & symptoms) and finding.severity is not Severity.NOTE
        if answers and any(_works(case, remedy.pins, others) for remedy in finding.remedies):
            return finding
    return None


def _works(case: Case, pins: Mapping[str, str], others: Sequence[Case]) -> bool:
    """True when a range leaves out what fails, and what is known of the project does not contradict it."""
    told = {name: spec for name, spec in pins.items() if name in case.versions}
    if not told or all(version_satisfies(Version(case.versions[n]), s) for n, s in told.items()):
        return False
    project, package, _ = case.upgraded
    same = [c for c in others if c.upgraded[:2] == (project, package)]
    inside = [c for c in same if all(_inside(c, n, s) for n, s in told.items())]
    if any(c.crash and c.last == case.last for c in inside):
        return False
    healthy = [c for c in same if not c.crash]
    return package not in told or not healthy or any(not c.crash for c in inside)


def _inside(case: Case, name: str, specifier: str) -> bool:
    version = case.versions.get(name)
    return version is not None and version_satisfies(Version(version), specifier)


def unmet(diagnosis: Diagnosis) -> bool:
    """True when a requirement of what is installed is said not to hold."""
    told = (f for f in diagnosis.findings if f.id == "REQUIREMENT-UNMET" and f.severity is not Severity.NOTE)
    return any(f.certainty is Certainty.CERTAIN for f in told)


def share(part: int, whole: int) -> str:
    """Return a share in words."""
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "none"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--show", action="store_true", help="name what is missed")
    options = parser.parse_args()
    cases, matrix = read_cases(options.cases), load_matrix()
    started = time.perf_counter()
    for case in cases:
        judge(case, matrix)
    spent = time.perf_counter() - started
    _conflicts(cases, options.show)
    healthy = [c for c in cases if not c.crash and not c.conflicts]
    wrong = [c for c in healthy if any(f.severity is Severity.ERROR for f in c.diagnosis.findings)]
    print(f"healthy with an error: {share(len(wrong), len(healthy))}")
    _show(wrong if options.show else [], "healthy, yet")
    _crashes(cases, options.show)
    print(f"{1000 * spent / len(cases):.0f} ms a case")


def _conflicts(cases: Sequence[Case], show: bool) -> None:
    said = [c for c in cases if unmet(c.diagnosis)]
    true = [c for c in cases if c.conflicting]
    right = [c for c in said if c.conflicting]
    print(f"conflicts precision: {share(len(right), len(said))}, recall: {share(len(right), len(true))}")
    _show([c for c in said if not c.conflicting] if show else [], "no conflict, yet")
    _show([c for c in true if not unmet(c.diagnosis)] if show else [], "conflict, yet")


def _crashes(cases: Sequence[Case], show: bool) -> None:
    projects = defaultdict(list)
    for case in cases:
        projects[case.upgraded[0]].append(case)
    crashed = [c for c in cases if c.crash]
    explained = {c.name for c in crashed if explaining(c, projects[c.upgraded[0]])}
    plain = [c for c in crashed if not c.tensorflow]
    print(f"crashes explained: {share(len(explained), len(crashed))}")
    print(f"  without TensorFlow: {share(sum(c.name in explained for c in plain), len(plain))}")
    _show([c for c in crashed if c.name not in explained] if show else [], "unexplained")


def _show(cases: Sequence[Case], what: str) -> None:
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.upgraded[0], case.last[:90]].append(case)
    for (project, last), some in groups.items():
        found = [
            f"{f.id} {f.summary[:110]}" for f in some[0].diagnosis.findings if f.severity is Severity.ERROR
        ]
        print(f"  {what}: {project} x{len(some)} ({some[0].name}) {last}\n      {found}")
        print(f"      {some[0].conflicts[:3]}" if some[0].conflicts else "", end="\n")


if __name__ == "__main__":
    main()
