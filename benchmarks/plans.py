"""One plan for all findings: right where it says complete, small, and for the interpreter that was examined.

    python benchmarks/plans.py [FOLDER]... [--breakages N] [--brute N] [--seed N]

Plans for the recorded machines and pastes of the tests and the cases of each FOLDER (as
`remedies.py` reads them), then for N random breakages of the healthy recorded machines: one to
three packages of the stack at another release, or taken out. What is called complete is judged
again from its JSON alone. Of small ones (two changes) every single change of the packages that the
findings name is tried: one that mends as much is smaller.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from remedies import TESTS, read_recorded

from envdoctor.diagnosis import diagnose_facts, make_plan
from envdoctor.facts import Facts
from envdoctor.findings import Finding, Plan, Severity
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.matrix.snapshot import load_snapshot
from envdoctor.matrix.stack import STACK
from envdoctor.plan.following import apply_changes, identity
from envdoctor.plan.settings import with_settings
from envdoctor.plan.wishes import considered
from envdoctor.rules import RULES, run_checks
from envdoctor.solve.nodes import Context
from envdoctor.target.resolve import target_of

RELEASES = 25
"""How many releases of a package brute force tries, spread over all."""


@dataclass
class Tally:
    """What the plans showed."""

    plans: int = 0
    complete: int = 0
    wrong: list[str] = field(default_factory=list)
    unaimed: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, name: str, facts: Facts, matrix: Matrix) -> tuple[Plan | None, tuple[Finding, ...]]:
        """Plan for one case and hold the plan against what it promises."""
        findings = diagnose_facts(facts, matrix, complete=False).findings
        start = time.perf_counter()
        plan = make_plan(findings, facts, matrix)
        self.seconds.append(time.perf_counter() - start)
        if plan is None:
            return None, findings
        self.plans += 1
        self.complete += plan.complete
        if plan.complete and (errors := errors_after(plan, facts, matrix)):
            self.wrong.append(f"{name}: {[e.summary for e in errors][:2]}")
        python = facts.environment.executable.get()
        bare = [line for line in plan.commands if " pip " in f" {line}" and python and python not in line]
        self.unaimed += [f"{name}: {line}" for line in bare]
        return plan, findings

    def told(self, what: str) -> str:
        """Return the figures in a line."""
        times = sorted(self.seconds) or [0.0]
        p95 = times[int(0.95 * (len(times) - 1))]
        return (
            f"{what}: {self.plans} plans, {self.complete} complete, {len(self.wrong)} of them with an error"
            f" after all, {len(self.unaimed)} commands for no interpreter;"
            f" median {statistics.median(times):.2f} s, 95 % {p95:.2f} s, longest {times[-1]:.2f} s"
        )


def errors_after(plan: Plan, facts: Facts, matrix: Matrix) -> list[Finding]:
    """Judge what the plan's JSON leads to, from that alone."""
    told = plan.to_json()["changes"]
    versions = {c["name"]: c["to"] for c in told if c["to"] is not None and c["from"] != c["to"]}
    gone = [c["name"] for c in told if c["to"] is None]
    again = [c["name"] for c in told if c["to"] is not None and c["from"] == c["to"]]
    changed = apply_changes(with_settings(facts, plan.settings, plan.commands), versions, gone, again)
    _, found = run_checks(changed, matrix, RULES)
    return [finding for finding in found if finding.severity is Severity.ERROR]


def breakages(count: int, seed: int, matrix: Matrix) -> Iterator[tuple[str, Facts]]:
    """Yield healthy machines with packages moved or taken out, where that is found."""
    draw = random.Random(seed)
    healthy = [one for one in read_recorded([], matrix) if one[0].startswith("healthy-")]
    made = 0
    while made < count:
        name, facts = draw.choice(healthy)
        listed = [n for n in facts.environment.distributions if n in STACK or draw.random() < 0.1]
        chosen = draw.sample(sorted(listed), min(draw.randint(1, 3), len(listed)))
        versions, gone = {}, []
        for package in chosen:
            if draw.random() < 0.2:
                gone.append(package)
            elif others := releases(facts, matrix, package):
                versions[package] = draw.choice(others)
        broken = apply_changes(facts, versions, gone)
        before = {identity(f) for f in run_checks(facts, matrix, RULES)[1]}
        found = [f for f in run_checks(broken, matrix, RULES)[1] if identity(f) not in before]
        if any(f.severity is not Severity.NOTE for f in found):
            made += 1
            yield f"{name} with {versions} without {gone}", broken


def releases(facts: Facts, matrix: Matrix, package: str) -> list[str]:
    """Return the releases of a package that install on a machine, oldest first."""
    node = Context(load_snapshot(matrix.folder), matrix, target_of(facts, matrix)).node(package)
    if node is None:
        return []
    bits = [bit for bit in range(len(node.places)) if node.allowed >> bit & 1]
    return list(dict.fromkeys(node.version(bit) for bit in bits))


def smaller(plan: Plan, facts: Facts, findings: tuple[Finding, ...], matrix: Matrix) -> str | None:
    """Return a single change that mends as much as a plan of two, or None."""
    meant = {identity(f) for f in considered(findings)}
    left = meant & {identity(f) for f in errors_and_warnings(plan, facts, matrix)}
    before = {identity(f) for f in findings}
    named = {e.fact for f in considered(findings) for e in f.evidence}
    named |= {name for f in considered(findings) for r in f.remedies for name in r.pins}
    for package in sorted(named & facts.environment.distributions.keys()):
        every = releases(facts, matrix, package)
        for version in every[:: max(1, len(every) // RELEASES)]:
            _, found = run_checks(apply_changes(facts, {package: version}), matrix, RULES)
            new = [f for f in found if f.severity is not Severity.NOTE and identity(f) not in before]
            if not new and meant & {identity(f) for f in found} <= left:
                return f"{package}=={version}"
    return None


def errors_and_warnings(plan: Plan, facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Return what is found where the plan leads."""
    versions = {m.name: m.new for m in plan.moves if m.new and m.old != m.new}
    gone = [m.name for m in plan.moves if m.new is None]
    changed = with_settings(facts, plan.settings, plan.commands)
    return run_checks(apply_changes(changed, versions, gone), matrix, RULES)[1]


def main() -> int:
    """Print the figures; 1 where a plan called complete is not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--breakages", type=int, default=200)
    parser.add_argument("--brute", type=int, default=30, help="small plans to hold against brute force")
    parser.add_argument("--seed", type=int, default=22)
    args = parser.parse_args()
    matrix = load_matrix()
    recorded, broken = Tally(), Tally()
    for name, facts in read_recorded(args.folders, matrix):
        recorded.add(name, facts, matrix)
    print(recorded.told(f"recorded ({TESTS.name} and {len(args.folders)} folders)"), flush=True)
    small = least = 0
    unsolved = 0
    for name, facts in breakages(args.breakages, args.seed, matrix):
        plan, findings = broken.add(name, replace(facts, symptoms=()), matrix)
        moved = [m for m in plan.moves if m.old is not None] if plan else []
        unsolved += bool(plan and not plan.complete)
        if plan and not plan.complete:
            print(f"  not complete: {name}: {plan.unsolved} {plan.notes[:1]}", flush=True)
        if plan and plan.complete and len(moved) <= 2 and small < args.brute:
            small += 1
            better = smaller(plan, facts, findings, matrix) if len(moved) == 2 else None
            least += better is None
            if better:
                print(f"  smaller: {name}: {better} for {[(m.name, m.new) for m in moved]}", flush=True)
    print(broken.told("breakages"))
    print(f"as small as brute force finds: {least} of {small}")
    for line in (*recorded.wrong, *broken.wrong, *recorded.unaimed, *broken.unaimed):
        print(f"  {line}")
    return 1 if recorded.wrong or broken.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
