"""The assembly: facts are read and judged, remedies completed, and all of it becomes one value."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from envdoctor import __version__
from envdoctor.errors import InputError
from envdoctor.facts import Facts, Observed, Symptom, Verdict, from_json
from envdoctor.findings import Certainty, Diagnosis, Finding, Remedy, Severity, exit_code
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.rules import RULES, run_checks
from envdoctor.rules.rows import install_commands

if TYPE_CHECKING:
    from envdoctor.smokes import SmokeReport

COMPLETED = 3
"""How many findings have a remedy completed: each costs a tenth of a second."""


def diagnose(
    sources: Sequence[str] = (),
    *,
    python: str | None = None,
    gpus: Sequence[str] = (),
    smoke: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
) -> Diagnosis:
    """Diagnose this machine, or what `sources` (files, `-`) tell; `gpus` are declared in place of those read.

    Raises InputError for an unusable file, card or selection, Unavailable when the matrix is missing.
    """
    matrix = load_matrix()
    facts = declare_gpus(read_facts(sources, python, matrix), gpus, matrix)
    if smoke:
        facts, _ = with_verdicts(facts, python, matrix)
    return diagnose_facts(facts, matrix, select=select, ignore=ignore, fail_on=fail_on)


def diagnose_facts(
    facts: Facts,
    matrix: Matrix | None = None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
    complete: bool = True,
) -> Diagnosis:
    """Judge `facts`; raises InputError for a selection that names no check.

    With `complete` the solver completes the likeliest remedies, so that following one breaks nothing else.
    """
    matrix = matrix or load_matrix()
    checks, findings = run_checks(facts, matrix, RULES, select, ignore)
    if complete:
        findings = complete_findings(findings, facts, matrix)
    return Diagnosis(
        facts=facts,
        checks=checks,
        findings=findings,
        exit_code=exit_code(facts, findings, checks, fail_on),
        tool_version=__version__,
        matrix_version=matrix.version,
        matrix_date=matrix.date,
    )


def complete_findings(findings: Sequence[Finding], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Return the findings with the first remedies of the worst completed to what leaves all else in order."""
    installed = [d for d in facts.environment.distributions.values() if d.version]
    worst = [
        f for f in findings if f.severity is not Severity.NOTE and f.certainty is not Certainty.UNCERTAIN
    ]
    if len(installed) < 2:
        return tuple(findings)
    chosen = {finding.id for finding in worst[:COMPLETED]}
    return tuple(_completed(f, facts, matrix) if f.id in chosen else f for f in findings)


def _completed(finding: Finding, facts: Facts, matrix: Matrix) -> Finding:
    """Complete the first plain installation that can be; those that cannot be go behind all others."""
    ordered: list[Remedy] = []
    broken: list[Remedy] = []
    for place, remedy in enumerate(finding.remedies):
        plain = remedy.pins and remedy.commands == install_commands(remedy.pins)
        whole = _whole(remedy, facts, matrix) if plain else remedy
        if plain and whole is not None:
            return replace(finding, remedies=(*ordered, whole, *finding.remedies[place + 1 :], *broken))
        (ordered if whole is not None else broken).append(remedy)
    return replace(finding, remedies=(*ordered, *broken))


def _whole(remedy: Remedy, facts: Facts, matrix: Matrix) -> Remedy | None:
    from envdoctor.solve.remedy import NoRemedy, complete_remedy

    found = complete_remedy(facts, matrix, remedy.pins)
    if isinstance(found, NoRemedy):
        return None
    others = [f"{n} {old} to {new}" for n, (old, new) in found.changes.items() if n not in remedy.pins]
    more = f" What depends on it moves along: {', '.join(others)}." if others else ""
    return replace(remedy, text=remedy.text + more, commands=found.commands)


def read_facts(sources: Sequence[str], python: str | None, matrix: Matrix) -> Facts:
    """Return the facts of the given files, or of this machine when there are none; raises InputError."""
    if sources:
        from envdoctor.pastes import key_names, read_files, symptom_patterns

        return read_files(sources, symptom_patterns(matrix.rows("symptom")), key_names(matrix.rows("key")))
    from envdoctor.probes import NoInterpreter, read_machine

    try:
        return from_json(read_machine(python))
    except NoInterpreter as error:
        raise InputError(f"--python {python}: {error}") from None


def declare_gpus(facts: Facts, names: Sequence[str], matrix: Matrix) -> Facts:
    """Return the facts with the declared cards in place of what was read; raises InputError."""
    if not names:
        return facts
    from envdoctor.matrix.gpus import declared_gpu

    gpus = tuple(declared_gpu(matrix, name, index) for index, name in enumerate(names))
    return replace(facts, gpus=Observed(gpus, "--gpu"))


def with_verdicts(facts: Facts, python: str | None, matrix: Matrix) -> tuple[Facts, SmokeReport]:
    """Run the smoke kernels in the examined interpreter; return the facts with verdicts, and the report."""
    from envdoctor.smokes import run_smokes

    report = run_smokes(python or facts.environment.executable.get() or sys.executable)
    verdicts = tuple(Verdict(r.label, r.outcome, "smoke", r.reason) for r in report.results)
    said = "\n".join(f"{r.reason or ''}\n{r.stderr_tail}" for r in report.results if r.outcome != "passed")
    symptoms = (*facts.symptoms, *_symptoms_of(said, matrix))
    return replace(facts, verdicts=verdicts, symptoms=symptoms), report


def _symptoms_of(text: str, matrix: Matrix) -> tuple[Symptom, ...]:
    """Return the error lines recognised in what failing kernels said."""
    from envdoctor.pastes import parse_paste, symptom_patterns

    return parse_paste(text, "smoke", symptom_patterns(matrix.rows("symptom"))).symptoms
