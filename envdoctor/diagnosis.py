"""The assembly: facts are judged, remedies completed, and all of it becomes one value."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor import __version__
from envdoctor.facts import Facts
from envdoctor.findings import Diagnosis, Severity, exit_code
from envdoctor.matrix import Matrix, load_matrix
from envdoctor.rules import RULES, run_checks


def diagnose_facts(
    facts: Facts,
    matrix: Matrix | None = None,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
) -> Diagnosis:
    """Judge `facts` and return the diagnosis.

    Raises InputError for a selection that names no check.
    """
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
