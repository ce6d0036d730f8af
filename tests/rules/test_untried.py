"""What nothing forbids and nobody can have tried is told as unknown: a note, never an error."""

from __future__ import annotations

from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Facts
from envdoctor.findings import CheckResult, Finding, Outcome, Severity
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def judged(*pins: str) -> tuple[CheckResult, list[Finding]]:
    facts: Facts = parse_paste("\n".join(pins), "", load_matrix().lexicon)
    answer = diagnose_facts(facts, select=("RELEASES-UNTRIED",))
    return answer.checks[0], list(answer.findings)


def test_a_release_of_long_before_a_major_version_is_noted_beside_it() -> None:
    check, [found] = judged("autoawq==0.2.9", "transformers==5.1.0")
    assert check.outcome is Outcome.FAILED
    assert found.severity is Severity.NOTE
    assert "autoawq 0.2.9 with transformers 5.1.0" in found.summary
    assert "2026-01-26" in found.evidence[0].value


def test_releases_of_one_time_and_those_that_say_what_they_take_pass() -> None:
    assert judged("peft==0.18.0", "transformers==5.1.0")[0].outcome is Outcome.PASSED
    assert judged("trl==0.9.6", "transformers==4.44.0")[0].outcome is Outcome.PASSED
    assert (
        judged("unsloth==2024.9.post4", "transformers==5.1.0")[0].outcome is Outcome.PASSED
    )  # it says <4.45


def test_where_no_two_are_told_nothing_was_looked_at() -> None:
    assert judged("torch==2.9.0")[0].outcome is Outcome.SKIPPED
    assert judged("transformers==5.1.0", "rich==13.0.0")[0].outcome is Outcome.SKIPPED
