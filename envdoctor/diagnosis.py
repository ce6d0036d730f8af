"""The assembly: facts are read and judged, remedies completed, and all of it becomes one value."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from envdoctor import __version__
from envdoctor.errors import InputError
from envdoctor.facts import Facts, Observed, Verdict, from_json
from envdoctor.findings import Diagnosis, Severity, exit_code
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.rules import RULES, run_checks


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
        facts = with_verdicts(facts, python)
    return diagnose_facts(facts, matrix, select=select, ignore=ignore, fail_on=fail_on)


def diagnose_facts(
    facts: Facts,
    matrix: Matrix | None = None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
) -> Diagnosis:
    """Judge `facts`; raises InputError for a selection that names no check."""
    matrix = matrix or load_matrix()
    checks, findings = run_checks(facts, matrix, RULES, select, ignore)
    return Diagnosis(
        facts=facts,
        checks=checks,
        findings=findings,
        exit_code=exit_code(findings, checks, fail_on),
        tool_version=__version__,
        matrix_version=matrix.version,
        matrix_date=matrix.date,
    )


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


def with_verdicts(facts: Facts, python: str | None) -> Facts:
    """Run the smoke kernels in the examined interpreter and return the facts with their verdicts."""
    from envdoctor.smokes import run_smokes

    report = run_smokes(python or facts.environment.executable.get() or sys.executable)
    return replace(facts, verdicts=tuple(Verdict(r.op, r.outcome, "smoke", r.reason) for r in report.results))
