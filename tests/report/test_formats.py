from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import junitparser
import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sample_diagnosis import ARCH, BNB, diagnosis, healthy

from envdoctor.findings import Evidence, Finding, Remedy, Severity
from envdoctor.report import FORMATS, render

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
    assert "          $ pip install 'torch>=2.7'" in text
    assert "GPU                 NVIDIA GeForce RTX 5090, sm_120, 31.8 GiB" in text


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
    assert text.startswith("✓ nothing found  1 checks passed\n")
    assert len(text.splitlines()) < 12


def test_colour_and_plain_text_say_the_same():
    coloured = render(diagnosis(), colour=True)
    assert "\x1b[1;31m" in coloured
    words = re.sub(r"\x1b\[[0-9;]*m", "", coloured).split()
    assert words == render(diagnosis()).split()


def test_only_colour_imports_rich():
    code = (
        "import sys; sys.path.insert(0, 'tests/report'); import sample_diagnosis as s;"
        "from envdoctor.report import render, FORMATS;"
        "[render(s.diagnosis(), f) for f in FORMATS]; assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("colour", [False, True])
def test_a_hostile_string_commands_no_terminal(colour):
    screen = pyte.Screen(200, 200)
    screen.set_title("mine")
    pyte.Stream(screen).feed("untouched\r\n")
    pyte.Stream(screen).feed(render(diagnosis(hostile()), colour=colour).replace("\n", "\r\n"))
    assert screen.title == "mine"
    assert screen.display[0].startswith("untouched")
    assert "\u202e" not in render(diagnosis(hostile()), colour=colour)


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
    assert "more findings are left out here" in page


def words_outside_code(markdown: str) -> str:
    tokens = [
        t
        for token in MarkdownIt("commonmark").enable("table").parse(markdown)
        for t in (token, *(token.children or ()))
    ]
    assert not [t for t in tokens if t.type in ("link_open", "image", "html_inline")]
    assert {t.content for t in tokens if t.type == "html_block"} <= {
        "<details>\n<summary>All 2 packages</summary>\n",
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
