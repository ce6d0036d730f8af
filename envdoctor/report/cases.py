"""A diagnosis as test cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envdoctor.findings import CheckResult, Diagnosis, Finding, Outcome, Severity
from envdoctor.report.junit import Case


def cases(diagnosis: Diagnosis) -> Iterator[Case]:
    """Yield a test case for each check, and for each finding that belongs to none; notes are no failures."""
    checked = {check.rule for check in diagnosis.checks}
    for check in diagnosis.checks:
        yield _check_case(check, [f for f in diagnosis.findings if _belongs(f, check.rule)])
    for finding in diagnosis.findings:
        if not any(_belongs(finding, rule) for rule in checked):
            yield finding_case(_family(finding.id), finding.id, [finding])


def _belongs(finding: Finding, rule: str) -> bool:
    return finding.id == rule or finding.id.startswith(f"{rule}-")


def _family(rule: str) -> str:
    return rule.partition("-")[0].lower()


def _check_case(check: CheckResult, found: Sequence[Finding]) -> Case:
    case = Case(_family(check.rule), check.rule, seconds=check.duration_ms / 1000)
    match check.outcome:
        case Outcome.PASSED:
            return case
        case Outcome.CRASHED:
            return case._replace(outcome="error", kind="crashed", message=check.reason or "the check broke")
        case Outcome.SKIPPED:
            return case._replace(outcome="skipped", message=check.reason or "too little is known")
        case Outcome.FAILED if found:
            return finding_case(case.family, check.rule, found)._replace(seconds=case.seconds)
        case Outcome.FAILED:
            return case._replace(outcome="skipped", message="a likelier cause was found")


def finding_case(family: str, name: str, found: Sequence[Finding], where: str = "") -> Case:
    """Return the case that findings fail; notes alone are remarks."""
    text = "\n\n".join(map(_finding_text, found))
    worst = next((f for f in found if f.severity is not Severity.NOTE), None)
    if worst is None:
        return Case(family, name, text=text)
    return Case(family, name, "failure", where + worst.summary, text, worst.severity.value)


def _finding_text(finding: Finding) -> str:
    seen = "".join(f"\nseen: {e.fact} {e.value} ({e.source})" for e in finding.evidence)
    remedies = "".join(
        f"\ndo: {r.text}" + "".join(f"\n  $ {c}" for c in r.commands) for r in finding.remedies
    )
    return f"{finding.summary}\n{finding.cause}{seen}{remedies}"
