"""A diagnosis as test cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor.commands import prompted
from envdoctor.findings import CheckResult, Diagnosis, Finding, Outcome, Severity
from envdoctor.report.junit import Case
from envdoctor.report.places import place_of


def cases(diagnosis: Diagnosis) -> Iterator[Case]:
    """Yield a test case for each check, and for each finding that belongs to none; notes are no failures."""
    checked = {check.rule for check in diagnosis.checks}
    files = diagnosis.examined.files
    for check in diagnosis.checks:
        yield _check_case(check, [f for f in diagnosis.findings if _belongs(f, check.rule)], files)
    for finding in diagnosis.findings:
        if not any(_belongs(finding, rule) for rule in checked):
            yield finding_case(_family(finding.id), finding.id, [finding], files=files)


def _belongs(finding: Finding, rule: str) -> bool:
    return finding.id == rule or finding.id.startswith(f"{rule}-")


def _family(rule: str) -> str:
    return rule.partition("-")[0].lower()


def _check_case(check: CheckResult, found: Sequence[Finding], files: Sequence[str]) -> Case:
    case = Case(_family(check.rule), check.rule, seconds=check.duration_ms / 1000)
    match check.outcome:
        case Outcome.PASSED:
            return case
        case Outcome.CRASHED:
            return case._replace(outcome="error", kind="crashed", message=check.reason or "the check broke")
        case Outcome.SKIPPED:
            return case._replace(outcome="skipped", message=check.reason or "too little is known")
        case Outcome.FAILED if found:
            return finding_case(case.family, check.rule, found, files=files)._replace(seconds=case.seconds)
        case Outcome.FAILED:
            return case._replace(outcome="skipped", message="a likelier cause was found")


def finding_case(
    family: str, name: str, found: Sequence[Finding], where: str = "", files: Sequence[str] = ()
) -> Case:
    """Return the case that findings fail, each told with its file and line; notes alone are remarks."""
    text = "\n\n".join(_at(f, files) + _finding_text(f) for f in found)
    worst = next((f for f in found if f.severity is not Severity.NOTE), None)
    if worst is None:
        return Case(family, name, text=text)
    message = where + _at(worst, files) + worst.summary
    return Case(family, name, "failure", message, text, worst.severity.value)


def _at(finding: Finding, files: Sequence[str]) -> str:
    """Return `requirements.txt:4: `, as compilers say it."""
    place = place_of(finding, files)
    return f"{place.file}:{place.line}: " if place else ""


def _finding_text(finding: Finding) -> str:
    seen = "".join(f"\nseen: {e.fact} {e.value} ({e.source})" for e in finding.evidence)
    remedies = "".join(
        f"\ndo: {r.text}" + "".join(f"\n  {prompted(c)}" for c in r.commands) for r in finding.remedies
    )
    return f"{finding.summary}\n{finding.cause}{seen}{remedies}"
