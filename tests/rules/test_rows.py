"""A row speaks where its conditions hold, hints at a symptom, and is silent against the facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from declared import pasted

from envdoctor.diagnosis import diagnose_facts
from envdoctor.errors import InputError, Unavailable
from envdoctor.facts import (
    ComputeCapability,
    Distribution,
    Environment,
    Facts,
    Gpu,
    Observed,
    Setting,
    Symptom,
)
from envdoctor.findings import Certainty, Finding, Outcome
from envdoctor.matrix import Matrix

MatrixOf = Callable[[str], Matrix]

PROVENANCE = 'source = "https://example.org/why"\nchecked_on = "2026-11-20"\nbasis = "wheel inspection"\n'
PAIR = f"""
[[row]]
id = "PAIR-OLD-NEW"
when = {{ old = "<2", new = ">=5" }}
symptoms = ["SYM-BROKEN"]
severity = "error"
summary = "old {{old}} breaks new {{new}} in {{sym.where}}"
cause = "because"
remedies = [
  {{ text = "raise old", pins = {{ old = ">=2" }} }},
  {{ text = "lower new", pins = {{ new = "<5" }} }},
]
{PROVENANCE}
"""
GUESSES = f"""
[[row]]
id = "GUESS-RARE"
when = {{ rare = ">=1" }}
symptoms = ["SYM-BROKEN"]
raises = "symptom"
severity = "error"
summary = "a rare cause"
cause = "because"
prior = 0.1
{PROVENANCE}
[[row]]
id = "FOLLOWS"
symptoms = ["SYM-LATER"]
severity = "error"
summary = "a consequence"
cause = "because"
prior = 0.9
consequence_of = ["PAIR-*"]
{PROVENANCE}
"""
BROKEN = Symptom("SYM-BROKEN", "it broke", "line 4", {"where": "main.py"})


def facts(versions: Mapping[str, str], *symptoms: Symptom, complete: bool = False) -> Facts:
    distributions = {
        name: Distribution(name, f"line {line}", version)
        if version[0].isdigit()
        else Distribution(name, f"line {line}", specifier=version)
        for line, (name, version) in enumerate(versions.items(), 1)
    }
    return Facts(environment=Environment(distributions=distributions, complete=complete), symptoms=symptoms)


def judged(matrix: Matrix, known: Facts) -> dict[str, Finding]:
    """Return what the rows found; the rules in code have nothing to see here."""
    return {f.id: f for f in diagnose_facts(known, matrix).findings}


def test_known_versions_are_certain(matrix_of: MatrixOf) -> None:
    finding = judged(matrix_of(PAIR), facts({"old": "1.5", "new": "5.2"}))["PAIR-OLD-NEW"]
    assert finding.certainty is Certainty.CERTAIN
    assert finding.summary == "old 1.5 breaks new 5.2 in …"
    assert [e.source for e in finding.evidence] == ["line 1", "line 2"]
    assert finding.sources == ("https://example.org/why",)


def test_a_symptom_and_half_of_the_facts_are_likely(matrix_of: MatrixOf) -> None:
    finding = judged(matrix_of(PAIR), facts({"old": "1.5"}, BROKEN))["PAIR-OLD-NEW"]
    assert finding.certainty is Certainty.LIKELY
    assert finding.summary == "old 1.5 breaks new in main.py"


def test_a_symptom_alone_is_uncertain(matrix_of: MatrixOf) -> None:
    assert judged(matrix_of(PAIR), facts({}, BROKEN))["PAIR-OLD-NEW"].certainty is Certainty.UNCERTAIN


@pytest.mark.parametrize(
    ("line", "certainty"),
    [("it broke", Certainty.UNCERTAIN), ("it broke in site-packages/old/cli.py", Certainty.LIKELY)],
)
def test_a_package_that_is_nowhere_named_is_not_likely_to_blame(
    matrix_of: MatrixOf, line: str, certainty: Certainty
) -> None:
    rows = PAIR.replace('new = ">=5"', 'python = ">=3.12"').replace("{new}", "").replace('new = "<5"', "")
    seen = facts({}, Symptom("SYM-BROKEN", line, "line 4", {"where": "main.py"}))
    known = replace(seen, environment=replace(seen.environment, python=Observed("3.12.1", "line 1")))
    assert (
        judged(matrix_of(rows.replace('lower new", pins = {  }', 'wait"')), known)["PAIR-OLD-NEW"].certainty
        is certainty
    )


def test_a_symptom_never_outranks_facts(matrix_of: MatrixOf) -> None:
    assert set(judged(matrix_of(PAIR), facts({"old": "2.0", "new": "5.2"}, BROKEN))) == {"UNEXPLAINED-ERROR"}


def test_unknown_is_no_finding_but_a_skipped_check(matrix_of: MatrixOf) -> None:
    diagnosis = diagnose_facts(facts({"old": "1.5"}), matrix_of(PAIR))
    check = next(c for c in diagnosis.checks if c.rule == "PAIR-OLD-NEW")
    assert (check.outcome, check.reason) == (Outcome.SKIPPED, "not told: new")


def test_a_row_for_an_error_line_has_passed_nothing_where_the_line_is_not_told(matrix_of: MatrixOf) -> None:
    checks = diagnose_facts(facts({"rare": "1.5"}), matrix_of(GUESSES)).checks
    check = next(check for check in checks if check.rule == "GUESS-RARE")
    assert (check.outcome, check.reason) == (Outcome.SKIPPED, "no error line that it explains is told")


def test_absence_is_known_only_of_a_complete_list(matrix_of: MatrixOf) -> None:
    matrix = matrix_of(PAIR)
    outcomes = [
        next(
            c.outcome
            for c in diagnose_facts(facts({"old": "1"}, complete=c), matrix).checks
            if c.rule == "PAIR-OLD-NEW"
        )
        for c in (False, True)
    ]
    assert outcomes == [Outcome.SKIPPED, Outcome.PASSED]


def test_a_remedy_that_holds_already_is_not_offered(matrix_of: MatrixOf) -> None:
    finding = judged(matrix_of(PAIR), facts({"old": "1.5", "new": "<5"}, BROKEN))
    assert set(finding) == {"UNEXPLAINED-ERROR"}
    finding = judged(matrix_of(PAIR), facts({"new": "5.1"}, BROKEN))
    assert [r.text for r in finding["PAIR-OLD-NEW"].remedies] == ["raise old", "lower new"]


def test_facts_choose_among_rival_causes(matrix_of: MatrixOf) -> None:
    found = judged(matrix_of(PAIR + GUESSES), facts({"old": "1.5", "new": "5"}, BROKEN))
    assert set(found) == {"PAIR-OLD-NEW"}
    found = judged(matrix_of(PAIR + GUESSES), facts({}, BROKEN))
    assert list(found) == ["PAIR-OLD-NEW", "GUESS-RARE"]


def test_a_consequence_stands_under_its_cause(matrix_of: MatrixOf) -> None:
    later = Symptom("SYM-LATER", "and then", "line 9")
    found = judged(matrix_of(PAIR + GUESSES), facts({"old": "1.5", "new": "5"}, BROKEN, later))
    assert list(found) == ["PAIR-OLD-NEW", "FOLLOWS"]
    assert found["FOLLOWS"].consequence_of == "PAIR-OLD-NEW"


def test_settings_gpus_and_negations(matrix_of: MatrixOf) -> None:
    row = f"""
[[row]]
id = "BF16"
when = {{ "setting.bf16" = "true|1", "gpu.cc" = "<8.0", "setting.task" = "!serve", "gpu.memory_gib" = "<24" }}
severity = "error"
summary = "{{gpu.cc}}"
cause = "because"
{PROVENANCE}
"""
    gpu = Gpu(
        0, "nvidia-smi", "Tesla T4", compute_capability=ComputeCapability(7, 5), memory_total_bytes=15 << 30
    )
    settings = (Setting("bf16", "True", "train.yaml, line 2"), Setting("task", "sft", "train.yaml, line 1"))
    known = Facts(gpus=Observed((gpu,), "nvidia-smi"), settings=settings)
    assert judged(matrix_of(row), known)["BF16"].summary == "Tesla T4 (compute capability 7.5)"


def test_select_and_ignore_name_checks(matrix_of: MatrixOf) -> None:
    matrix = matrix_of(PAIR + GUESSES)
    assert [c.rule for c in diagnose_facts(Facts(), matrix, select=("pair-*",)).checks] == ["PAIR-OLD-NEW"]
    assert "FOLLOWS" not in [c.rule for c in diagnose_facts(Facts(), matrix, ignore=("FOLLOWS",)).checks]
    with pytest.raises(InputError, match="--select NOPE"):
        diagnose_facts(Facts(), matrix, select=("NOPE",))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            PAIR.replace('source = "https://example.org/why"\n', ""),
            r"rows\.toml:2: PAIR-OLD-NEW: source missing",
        ),
        (
            PAIR.replace('severity = "error"', 'severity = "bad"'),
            r"rows\.toml:6: PAIR-OLD-NEW: severity: 'bad' is none of",
        ),
        (PAIR.replace("2026-11-20", "yesterday"), r"rows\.toml:14: PAIR-OLD-NEW: checked_on: no day"),
        (PAIR.replace("cause =", "causes ="), r"rows\.toml:8: PAIR-OLD-NEW: causes: unknown field"),
        (PAIR + PAIR, "already used"),
        ("[[row]", "rows.toml"),
    ],
)
def test_a_malformed_row_is_named(matrix_of: MatrixOf, broken: str, message: str) -> None:
    with pytest.raises(Unavailable, match=message):
        matrix_of(broken)


def test_what_is_only_added_to_a_sentence_is_left_out_where_it_is_not_known() -> None:
    compiler = pasted("error: #error You need C++17 to compile PyTorch")["GCC-TOO-OLD"]
    assert "(gcc, g++)" in compiler.summary
    assert compiler.summary.endswith("a newer one is wanted")
