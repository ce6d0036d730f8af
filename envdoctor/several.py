"""Files of a repository, each judged by itself, as one diagnosis whose evidence names the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from envdoctor import __version__
from envdoctor.diagnosis import diagnose
from envdoctor.errors import InputError
from envdoctor.facts import Facts
from envdoctor.findings import (
    CheckResult,
    Diagnosis,
    Evidence,
    Examined,
    Finding,
    Outcome,
    Severity,
    exit_code,
    order,
)
from envdoctor.matrix import load_matrix
from envdoctor.values import replace

NOT_JUDGED = "NOT-JUDGED"
_LINE = re.compile(r"(?:^|[,:] )(?:[\w. ]{1,40}, )?line [0-9]{1,9}$")
_WORST = (Outcome.CRASHED, Outcome.FAILED, Outcome.PASSED, Outcome.SKIPPED)


def diagnose_each(
    paths: Sequence[str],
    *,
    gpus: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    fail_on: Severity = Severity.ERROR,
) -> Diagnosis:
    """Judge each file by itself; what a file of one environment says is no fact of another's.

    A file in which nothing is recognised is named in a note and leaves the exit code: a repository has files
    that are not for us. Raises InputError for a file that is not there.
    """
    judged: list[Diagnosis] = []
    others: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
        try:
            one = diagnose([path], gpus=gpus, select=select, ignore=ignore, fail_on=fail_on)
        except InputError as error:
            others[path] = str(error)
            continue
        if one.facts.unread and not one.findings and _tells_nothing(one.facts):
            others[path] = "; ".join(one.facts.unread.values())
        else:
            judged.append(_named(one, path))
    findings = order([finding for one in judged for finding in one.findings])
    findings += (_not_judged(others),) if others else ()
    checks = _merged(check for one in judged for check in one.checks)
    matrix = load_matrix()
    return Diagnosis(
        facts=judged[0].facts if len(judged) == 1 else Facts(origin="paste"),
        checks=checks,
        findings=findings,
        exit_code=exit_code(findings, checks, fail_on),
        tool_version=__version__,
        matrix_version=matrix.version,
        matrix_date=matrix.date,
        examined=Examined(", ".join(dict.fromkeys(paths)), tuple(dict.fromkeys(paths))),
    )


def _tells_nothing(facts: Facts) -> bool:
    """True when nothing but the declared cards is known."""
    return replace(facts, gpus=Facts().gpus, unread={}) == Facts(origin="paste")


def _not_judged(others: dict[str, str]) -> Finding:
    names = ", ".join(list(others)[:5]) + (" and others" if len(others) > 5 else "")
    return Finding(
        NOT_JUDGED,
        Severity.NOTE,
        f"not judged: {names}",
        "Nothing in them is known to envdoctor; that is no sign that they are right.",
        evidence=tuple(Evidence("file", path, reason) for path, reason in others.items()),
    )


def _named(diagnosis: Diagnosis, path: str) -> Diagnosis:
    """Return the diagnosis with the file named wherever evidence cites a line of it."""
    findings = tuple(
        replace(finding, evidence=tuple(_seen_in(path, one) for one in finding.evidence))
        for finding in diagnosis.findings
    )
    checks = tuple(
        check._replace(reason=f"{path}: {check.reason}") if check.outcome is Outcome.CRASHED else check
        for check in diagnosis.checks
    )
    return replace(diagnosis, findings=findings, checks=checks)


def _seen_in(path: str, evidence: Evidence) -> Evidence:
    cited = _LINE.match(evidence.source)
    return replace(evidence, source=f"{path}: {evidence.source}") if cited else evidence


def _merged(checks: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """Return each check once, with its worst outcome and the time of all files."""
    merged: dict[str, CheckResult] = {}
    for check in checks:
        former = merged.get(check.rule, check)
        worse = min(former, check, key=lambda one: _WORST.index(one.outcome))
        spent = check.duration_ms + (former.duration_ms if former is not check else 0.0)
        merged[check.rule] = worse._replace(duration_ms=spent)
    return tuple(merged.values())
