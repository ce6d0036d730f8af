from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from typing import get_args

import junitparser
import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sample_diagnosis import ARCH, BNB, diagnosis, healthy

from envdoctor.findings import Evidence, Examined, Finding, Outcome, Remedy, Severity
from envdoctor.report import Judged, Look
from envdoctor.report.places import find_place
from envdoctor.report.rendering import render

FORMATS = get_args(Judged)
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r::error::x <script>alert(1)</script> ``` @maintainer #123 ]]>"
)


def hostile() -> Finding:
    return replace(
        ARCH,
        summary=HOSTILE,
        cause=HOSTILE,
        evidence=(Evidence("torch", HOSTILE, HOSTILE),),
        remedies=(Remedy(HOSTILE, (HOSTILE,)),),
        sources=(HOSTILE,),
    )


def test_text_says_what_is_wrong_why_and_what_to_type():
    text = render(diagnosis())
    assert text.startswith("✗ 2 errors, 1 warning  from 2 causes\n")
    assert "has no kernels for the NVIDIA GeForce RTX 5090" in text
    assert "  why   The wheel was built for sm_50" in text
    assert "        $ pip install 'torch>=2.7'" in text
    assert "GPU          NVIDIA GeForce RTX 5090, sm_120, 31.8 GiB  (nvidia-smi, line 9)" in text


def test_text_puts_a_consequence_under_its_cause_and_marks_doubt():
    lines = render(diagnosis()).splitlines()
    cause = next(i for i, line in enumerate(lines) if "TORCH-ARCH" in line)
    consequence = next(i for i, line in enumerate(lines) if "BNB-BINARY" in line)
    assert consequence > cause
    assert lines[consequence].startswith(" └─ ")
    assert lines[consequence].endswith("likely")
    assert any(line.endswith("HOST-SHM  uncertain") for line in lines)


def test_text_says_when_a_check_broke():
    assert "1 check broke: the answer is not whole" in render(diagnosis(crashed=True))


def test_text_of_a_healthy_machine_is_short():
    text = render(healthy())
    assert text.startswith("✓ nothing found  1 check passed\n")
    assert len(text.splitlines()) < 16


def test_a_diagnosis_of_which_every_check_was_skipped_is_no_green_tick():
    skipped = tuple(c._replace(outcome=Outcome.SKIPPED, reason="not told: gpu") for c in healthy().checks)
    assert render(replace(healthy(), checks=skipped)).startswith("· nothing was judged")


def test_colour_and_plain_text_say_the_same():
    coloured = render(diagnosis(), look=Look(colour=True))
    assert "\x1b[1;31m" in coloured
    words = re.sub(r"\x1b\[[0-9;]*m", "", coloured).split()
    assert words == render(diagnosis()).split()


def test_only_colour_imports_rich():
    code = (
        "import sys; from typing import get_args; sys.path.insert(0, 'tests/report');"
        "import sample_diagnosis as s; from envdoctor.report import Judged;"
        "from envdoctor.report.rendering import render;"
        "[render(s.diagnosis(), f) for f in get_args(Judged)]; assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("colour", [False, True])
def test_a_hostile_string_commands_no_terminal(colour):
    screen = pyte.Screen(200, 200)
    screen.set_title("mine")
    pyte.Stream(screen).feed("untouched\r\n")
    pyte.Stream(screen).feed(render(diagnosis(hostile()), look=Look(colour=colour)).replace("\n", "\r\n"))
    assert screen.title == "mine"
    assert screen.display[0].startswith("untouched")
    assert "\u202e" not in render(diagnosis(hostile()), look=Look(colour=colour))


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_free_of_controls(format):
    text = render(diagnosis(hostile(), BNB), format)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


@given(st.text(), st.text())
@settings(max_examples=60, deadline=None)
def test_every_format_takes_any_text(summary, value):
    finding = replace(ARCH, summary=summary, cause=value, evidence=(Evidence("x", value, summary),))
    for format in FORMATS:
        render(diagnosis(finding), format)
    ET.fromstring(render(diagnosis(finding), "junit"))
    json.loads(render(diagnosis(finding), "sarif"))


def test_json_is_the_contract():
    data = json.loads(render(diagnosis(), "json"))
    assert data["schema"] == "envdoctor.diagnosis/1"
    assert [f["id"] for f in data["findings"]] == ["TORCH-ARCH", "BNB-BINARY", "HOST-SHM"]
    assert data["findings"][1]["consequence_of"] == "TORCH-ARCH"


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="unknown format 'pdf'"):
        render(healthy(), "pdf")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_html_is_one_file_with_a_policy_and_no_script():
    page = render(diagnosis(hostile()), "html")
    tags = _Tags()
    tags.feed(page)
    names = {tag for tag, _ in tags.seen}
    assert not names & {"script", "img", "link", "iframe", "object", "form"}
    assert not any(key.startswith("on") or key in ("src", "href", "style") for _, a in tags.seen for key in a)
    policy = next(a["content"] for tag, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_html_stays_under_200_kb():
    many = tuple(replace(ARCH, id=f"X-{i}", cause="word " * 400) for i in range(400))
    page = render(diagnosis(*many), "html")
    assert len(page.encode()) < 200_000
    assert "more are left out here" in page


def words_outside_code(markdown: str) -> str:
    tokens = [
        t
        for token in MarkdownIt("commonmark").enable("table").parse(markdown)
        for t in (token, *(token.children or ()))
    ]
    assert not [t for t in tokens if t.type in ("link_open", "image", "html_inline")]
    assert {t.content for t in tokens if t.type == "html_block"} <= {
        "<details>\n<summary>The machine, all 2 packages</summary>\n",
        "</details>\n",
    }
    return "\n".join(t.content for t in tokens if t.type == "text")


def test_markdown_mentions_nobody_and_links_no_issue():
    words = words_outside_code(render(diagnosis(hostile()), "markdown"))
    assert "@maintainer" not in words
    assert "#123" not in words


@given(
    st.lists(
        st.sampled_from(
            [
                "@you",
                "#12",
                "o/r#3",
                "GH-4",
                "<b>",
                "<!--",
                "`",
                "``",
                "```",
                "`a b`",
                "*",
                "_",
                "[x](http://y)",
                "!",
                "|",
                "\\",
                "~~~",
                "\n",
                " ",
                "a",
                "- ",
                "1. ",
                "# ",
                "> ",
                "&amp;",
                ".",
                "https://github.com/o/r/issues/9",
            ]
        ),
        max_size=12,
    ).map("".join)
)
@settings(max_examples=300, deadline=None)
def test_markdown_acts_on_nothing_that_was_said(text):
    finding = replace(
        ARCH, summary=text, cause=text, evidence=(Evidence(text, text, text),), remedies=(Remedy(text),)
    )
    words = words_outside_code(render(diagnosis(finding), "markdown"))
    assert not re.search(r"@you|#[0-9]|GH-4|github[.]com", words)


def test_markdown_fences_are_longer_than_any_in_the_text():
    inner = replace(ARCH, remedies=(Remedy("x", ("````\nrm -rf /",)),))
    assert "`````sh\n````\nrm -rf /\n`````" in render(diagnosis(inner), "markdown")


def test_sarif_points_at_the_line_that_evidence_names():
    run = json.loads(render(diagnosis(crashed=True), "sarif"))["runs"][0]
    first = run["results"][0]
    assert first["ruleId"] == run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "TORCH-ARCH"
    assert first["level"] == "error"
    physical = first["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "requirements.txt"
    assert physical["region"]["startLine"] == 12
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "XID-DECODE" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_junit_reads_back():
    suite = next(iter(junitparser.JUnitXml.fromstring(render(diagnosis(crashed=True), "junit").encode())))
    results = {case.name: [type(r).__name__ for r in case.result] for case in suite}
    assert results["TORCH-ARCH"] == ["Failure"]
    assert results["NCCL-VERSION"] == ["Skipped"]
    assert results["XID-DECODE"] == ["Error"]
    assert results["DRIVER-CUDA"] == []
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (6, 3, 1, 1)


def test_github_annotations_are_escaped_and_capped():
    many = tuple(replace(ARCH, id=f"A,{i}:", summary="100%\nnext ::warning::") for i in range(14))
    lines = render(diagnosis(*many), "github").splitlines()
    assert len(lines) == 11
    assert lines[0].startswith(
        "::error title=A%2C0%3A,file=requirements.txt,line=12::100%25%0Anext ::warning::"
    )
    assert lines[-1] == "envdoctor: 14 errors (4 more in the report)"


def test_severities_have_their_commands():
    note = replace(ARCH, severity=Severity.NOTE, evidence=())
    assert render(diagnosis(note), "github").startswith("::notice title=TORCH-ARCH::")


def test_notes_are_no_failures():
    note = replace(ARCH, severity=Severity.NOTE)
    suite = next(iter(junitparser.JUnitXml.fromstring(render(diagnosis(note), "junit").encode())))
    case = next(case for case in suite if case.name == "TORCH-ARCH")
    assert (suite.failures, case.result) == (0, [])
    assert "has no kernels" in case.system_out


@pytest.mark.parametrize(
    ("source", "files", "place"),
    [
        ("line 17", ("logs/issue.md",), ("logs/issue.md", 17)),
        ("collect_env, line 6", ("issue.md",), ("issue.md", 6)),
        (
            "requirements.txt: requirements, line 3",
            ("a/requirements.txt", "b.yaml"),
            ("a/requirements.txt", 3),
        ),
        ("b.yaml: line 2", ("a/requirements.txt", "b.yaml"), ("b.yaml", 2)),
        ("requirements.txt, line 12", (), ("requirements.txt", 12)),
        ("collect_env, line 6", (), None),
        ("line 6", ("a.txt", "b.txt"), None),
        ("NVML", ("issue.md",), None),
        ("vllm 0.4.0: Requires-Dist", ("issue.md",), None),
        ("a" * 100_000 + ", line x", (), None),
    ],
)
def test_a_place_is_a_file_as_it_was_named_and_a_line(source, files, place):
    assert find_place((Evidence("torch", "2.6", source),), files) == place


def test_annotations_stand_at_the_examined_file():
    seen = replace(ARCH, evidence=(Evidence("torch", "2.6", "pip list, line 3"),))
    told = replace(diagnosis(seen), examined=Examined("logs/x.md", ("logs/x.md",)))
    assert ",file=logs/x.md,line=3::" in render(told, "github")
    location = json.loads(render(told, "sarif"))["runs"][0]["results"][0]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "logs/x.md"
    assert location["physicalLocation"]["region"] == {"startLine": 3}


def test_sarif_has_the_members_that_its_schema_asks_for():
    log = json.loads(render(diagnosis(crashed=True), "sarif"))
    assert (log["version"], list(log)) == ("2.1.0", ["$schema", "version", "runs"])
    run = log["runs"][0]
    assert set(run) == {"tool", "invocations", "results", "columnKind"}
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    for result in run["results"]:
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        for location in result["locations"]:
            assert set(location) <= {"physicalLocation", "logicalLocations"}
            assert location["physicalLocation"]["region"]["startLine"] >= 1
            assert not re.search(r"[ \\]", location["physicalLocation"]["artifactLocation"]["uri"])


def test_html_folds_what_is_long_and_can_be_used_with_a_keyboard():
    many = tuple(replace(ARCH, id=f"E-{i}") for i in range(9))
    page = render(diagnosis(*many), "html")
    folded = page.partition("<details>")[2]
    assert page.count("<article") == 9
    assert folded.count("<article") == 4
    assert "<summary>4 more: 4 errors</summary>" in folded
    assert page.count("<pre") == page.count("<pre tabindex=0>")
    assert page.isascii()


def test_html_says_nothing_by_colour_alone():
    assert "<span class=error>error</span>" in render(diagnosis(), "html")


def test_findings_of_one_id_are_all_shown():
    twice = (replace(BNB, id="UNMET", summary="first"), replace(BNB, id="UNMET", summary="second"))
    for format in ("text", "markdown", "html", "sarif", "github", "junit"):
        told = render(diagnosis(ARCH, *twice), format)
        assert ("first" in told, "second" in told) == (True, True), format
