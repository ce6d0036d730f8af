"""Is the clone better than the original: probed, judged, what changed imported, its kernels smoked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from envdoctor.diagnosis import PlanWish, diagnose_facts, start_probes, with_verdicts
from envdoctor.errors import Unavailable
from envdoctor.facts import Facts
from envdoctor.findings import Diagnosis, Finding, Severity
from envdoctor.fixing.wholeness import recorded, with_missing_files
from envdoctor.matrix import Matrix
from envdoctor.plan.following import identity
from envdoctor.plan.wishes import SMALL
from envdoctor.processes import run_child

IMPORT_TIMEOUT_S = 300.0
_IMPORTER = """
import importlib, json, sys
failed = {}
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = "%s: %s" % (type(error).__name__, str(error)[:200])
print("\\n@" + json.dumps(failed))
"""


def examine(python: str, matrix: Matrix, smoke: bool = False, wish: PlanWish | None = None) -> Diagnosis:
    """Return the diagnosis of an environment, every file of its packages looked at; raises as probes do."""
    facts = with_missing_files(start_probes(python)())
    if smoke:
        facts, report = with_verdicts(facts, python, matrix)
        if report.exit_code not in (0, 1):
            raise Unavailable(f"fix: the smokes gave no answer: {report.unprovable or 'they broke'}")
    return diagnose_facts(facts, matrix, wish=wish)


def left(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """Return what a fix is to mend: errors, warnings, and notes of unmet or damaged packages."""
    return tuple(f for f in diagnosis.findings if f.severity is not Severity.NOTE or f.id in SMALL)


def check_better(before: Diagnosis, after: Diagnosis) -> None:
    """Raise Unavailable where the change mended nothing, or brought an error."""
    known = {identity(finding) for finding in before.findings}
    new = [f for f in after.findings if f.severity is Severity.ERROR and identity(f) not in known]
    if new:
        raise Unavailable(f"fix: the change would bring an error, nothing was changed: {new[0].summary}")
    if _weight(after) >= _weight(before):
        raise Unavailable("fix: the change mends nothing that was found, nothing was changed")


def check_nothing_lost(before: Facts, after: Facts, meant: Sequence[str]) -> None:
    """Raise Unavailable where a manager of packages took out more than was meant."""
    lost = before.environment.distributions.keys() - after.environment.distributions.keys() - set(meant)
    if lost:
        raise Unavailable(f"fix: the change would take out {', '.join(sorted(lost))}, nothing was changed")


def check_own_place(python: str, folder: Path) -> None:
    """Raise Unavailable where a copied interpreter does not take its own folder for its prefix."""
    done = run_child([python, "-I", "-B", "-c", "import sys; print(sys.prefix)"], timeout_s=IMPORT_TIMEOUT_S)
    told = done.stdout.strip().rpartition("\n")[2]
    if not told or os.path.realpath(told) != os.path.realpath(folder):
        said = told or done.stderr.strip()[-200:] or "nothing"
        raise Unavailable(f"fix: a copy of the interpreter does not run as one ({said}), nothing was changed")


def check_smoked(after: Diagnosis, original: Callable[[], Diagnosis]) -> None:
    """Raise Unavailable where a kernel fails on the clone that does not fail on the original, too."""
    wrong = _failing(after)
    if not wrong:
        return
    try:
        new = wrong - _failing(original())
    except Unavailable:  # broken as it is, it cannot run them
        new = wrong
    if new:
        raise Unavailable(
            f"fix: kernels fail after the change, nothing was changed: {', '.join(sorted(new))}"
        )


def _failing(diagnosis: Diagnosis) -> set[str]:
    return {v.op for v in diagnosis.facts.verdicts if v.outcome in ("failed", "crashed", "timeout")}


def _weight(diagnosis: Diagnosis) -> tuple[int, ...]:
    found = left(diagnosis)
    damaged = sum(len(one.problems) > 0 for one in diagnosis.facts.environment.distributions.values())
    return (*(sum(f.severity is severity for f in found) for severity in Severity), damaged)


def failing_imports(python: str, facts: Facts, names: Sequence[str]) -> tuple[str, ...]:
    """Import what the named packages install; return the modules that fail, each with why."""
    modules = sorted({module for name in names for module in top_modules(facts, name)})
    if not modules:
        return ()
    done = run_child([python, "-I", "-B", "-c", _IMPORTER, json.dumps(modules)], timeout_s=IMPORT_TIMEOUT_S)
    line = next((x for x in reversed(done.stdout.splitlines()) if x.startswith("@")), None)
    if line is None:
        return (f"importing {', '.join(modules)} ended the interpreter ({done.signal or done.returncode})",)
    failed: dict[str, str] = json.loads(line[1:])
    return tuple(f"{name}: {why}" for name, why in failed.items())


def top_modules(facts: Facts, name: str) -> tuple[str, ...]:
    """Return the modules that a package puts at the top of its folder, private ones left out."""
    one = facts.distribution(name)
    if one is None or not one.location or not one.source.endswith(".dist-info"):
        return ()
    found: set[str] = set()
    for path, _ in recorded(Path(one.location) / one.source):
        head, slash, rest = path.partition("/")
        module = head if slash and rest == "__init__.py" else head.removesuffix(".py") if not slash else ""
        if module.isidentifier() and not module.startswith("_"):
            found.add(module)
    return tuple(sorted(found))
