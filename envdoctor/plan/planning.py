"""The one plan of a diagnosis: all findings' wishes solved together, followed in thought, judged again."""

from __future__ import annotations

from collections.abc import Sequence

from envdoctor.facts import Facts
from envdoctor.findings import Finding, Plan, Severity
from envdoctor.matrix import Matrix
from envdoctor.plan.case import Case
from envdoctor.plan.courses import Course, can_be_met, follow, left, stay
from envdoctor.plan.following import identity
from envdoctor.plan.telling import told
from envdoctor.plan.wishes import Wish, considered, wishes_of

ROUNDS = 4
"""How often what a plan would lead to may bring wishes of its own."""
TRIES = 8
"""How many wishes are tried one by one where they cannot all be met."""


def plan_for(
    findings: Sequence[Finding],
    facts: Facts,
    matrix: Matrix,
    *,
    keep: Sequence[str] = (),
    newest: bool = False,
) -> Plan | None:
    """Return one set of changes for all findings; None where nothing was found.

    `keep` are packages that must stay as they are; with `newest` what moves goes as far as it can.
    """
    if not findings:
        return None
    case = Case(tuple(findings), facts, matrix, tuple(keep), newest)
    return told(case, _best_course(case))


def _best_course(case: Case) -> Course:
    """Follow the wishes; what the result wishes is added, until nothing new is wished."""
    best = stay(case)
    wanted = [wish for wish in case.wishes if wish.packages]
    for _ in range(ROUNDS if wanted else 0):
        course = follow(case, wanted)
        if course is None:
            wanted, before = _feasible(case, wanted), len(wanted)
            if not wanted or len(wanted) == before:
                break
            continue
        if _is_better(case, course, best):
            best = course
        if not (more := _new_wishes(case, course, wanted)):
            break
        wanted = [*course.wishes, *more]
    return best


def _new_wishes(case: Case, course: Course, wanted: Sequence[Wish]) -> list[Wish]:
    """Return what the findings where a course leads wish of packages beyond what was wanted."""
    known = {identity(wish.finding) for wish in wanted}
    fresh = [finding for finding in considered(course.after) if identity(finding) not in known]
    return [wish for wish in wishes_of(fresh) if wish.packages and _is_grave(case, wish.finding)]


def _is_grave(case: Case, finding: Finding) -> bool:
    """True for an error that changes bring or leave, and for a warning that they bring."""
    return finding.severity is Severity.ERROR or identity(finding) not in case.known


def _is_better(case: Case, course: Course, best: Course) -> bool:
    """True when a course brings no error of its own and leaves less than the best so far."""
    if any(identity(finding) not in case.known for finding in course.errors):
        return False
    return left(case, course) < left(case, best)


def _feasible(case: Case, wishes: Sequence[Wish]) -> list[Wish]:
    """Return as many wishes, worst first, as can be met together."""
    kept: list[Wish] = []
    for wish in wishes[:TRIES]:
        if can_be_met(case, [*kept, wish]):
            kept.append(wish)
    return kept
