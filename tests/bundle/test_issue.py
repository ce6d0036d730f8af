from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.bundling.issue import Section, Step, compose, cut_end, fit, issue_link, length
from envdoctor.bundling.trackers import Report, cut_middle, find_tracker
from envdoctor.facts import Distribution, Environment, Facts
from envdoctor.findings import Diagnosis, Evidence, Finding, Remedy, Severity
from envdoctor.matrix import load_matrix

MATRIX = load_matrix()
PROJECTS = [None, "pytorch", "deepspeed", "axolotl", "unsloth", "flash-attn"]


def report(words: str, count: int, packages: int, logs: int) -> Report:
    findings = tuple(
        Finding(
            f"RULE-{i}",
            Severity.ERROR,
            words,
            words,
            (Evidence(words, words, words),),
            (Remedy(words, (words,)),),
            sources=(words,),
        )
        for i in range(count)
    )
    installed = {f"package-{i}": Distribution(f"package-{i}", "pip list", "1.0") for i in range(packages)}
    facts = Facts(environment=Environment(distributions=installed), notes=(words,))
    diagnosis = Diagnosis(facts, (), findings, 1, "0.1.0", "1", "2026-11-20")
    return Report(diagnosis, {f"{i:02d}-x.log": f"{words}\n" * 200 for i in range(logs)})


@given(
    words=st.text(max_size=300)
    | st.sampled_from(["word " * 600, "`" * 500, "😀" * 20_000, "x" * 70_000, "a\n" * 900]),
    count=st.integers(0, 4),
    packages=st.integers(0, 1000),
    logs=st.integers(0, 2),
    project=st.sampled_from(PROJECTS),
)
@settings(max_examples=10, deadline=None)
def test_the_report_always_fits_an_issue(words, count, packages, logs, project):
    tracker = find_tracker(MATRIX, project) if project else None
    given_report = report(words, count, packages, logs)
    text = compose(given_report, tracker)
    assert len(text) <= 65_536
    assert len(text.encode("utf-16-le", "surrogatepass")) // 2 <= 65_536
    if tracker:
        assert len(issue_link(given_report, tracker).encode()) <= 7500


def test_packages_go_first_then_the_log_and_the_findings_stay():
    text = compose(report("what is wrong " * 10, 3, 4000, 1), None, limit=12_000)
    assert "RULE-0" in text
    assert "package-3999" not in text
    assert len(text) <= 12_000


def test_of_all_steps_those_that_matter_least_come_first():
    dear, cheap = Section("d" * 50, (Step(90, "d"),)), Section("c" * 50, (Step(10, "c"),))
    assert fit([dear, cheap], 200) == "d" * 50 + "\n" + "c" * 50
    assert fit([dear, cheap], 60) == "d" * 50 + "\nc"
    assert fit([dear, cheap], 10) == "d\nc"


def test_what_cannot_be_shortened_is_cut_with_its_block_closed():
    body = "<details>\n<summary>x</summary>\n\n````text\n" + "line\n" * 400 + "````\n</details>\n"
    text = fit([Section(body)], 1000)
    assert len(text) <= 1000
    assert text.count("````") == 2
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("a\n" * 500, 1000, "a\n" * 500),
        ("a\n" * 500, 999, "a\n" * 299),
        ("é😀\n" * 300, 1000, "é😀\n" * 133),
        ("<details>\n</details>\n" + "a\n" * 500, 600, "<details>\n</details>\n" + "a\n" * 89),
        ("````\na\n````\n" + "b\n" * 500, 600, "````\na\n````\n" + "b\n" * 94),
        ("````\na\n```\n" + "b\n" * 500, 600, "````\na\n```\n" + "b\n" * 94 + "````\n"),
        ("x" * 5000, 1000, ""),
        ("a\n" * 500, 300, ""),
    ],
)
def test_a_text_is_cut_after_a_line(text, limit, cut):
    said = cut_end(text, limit)
    assert said.removesuffix("\n*Cut here: the whole is in the archive.*\n") == cut


def test_length_counts_as_a_browser_does():
    assert length("aé😀") == 4


def test_cutting_keeps_more_of_the_end():
    text = "".join(f"line {i}\n" for i in range(1000))
    short = cut_middle(text, 900)
    assert short.startswith("line 0\n")
    assert short.endswith("line 999\n")
    assert re.search(r"\[… [\d,]+ characters left out …\]", short)
    assert len(short) < 1000


@pytest.mark.parametrize("project", PROJECTS[1:])
def test_nobody_is_mentioned_and_no_issue_linked(project):
    words = "thanks @maintainer see #123 and https://github.com/o/r/issues/9"
    one = report(words, 1, 0, 0)
    text = compose(replace(one, logs={"01-x.log": words}), find_tracker(MATRIX, project))
    outside = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "@maintainer" not in outside
    assert "#123" not in outside
    assert "/issues/9" not in outside
