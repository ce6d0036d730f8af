"""What machines read has the members that the published schemas know, and no others.

The official files (OASIS's SARIF 2.1.0, junit-10.xsd of Jenkins' xunit plugin) are not ours to hand on: what
they say of the parts that we write stands here; `benchmarks/machine_formats.py` holds us against the files.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sample_diagnosis import ARCH, BNB, SHM, diagnosis

from envdoctor import diagnose
from envdoctor.findings import Evidence, Examined, Severity
from envdoctor.report.places import place_of
from envdoctor.report.rendering import render

TEXTS = {
    "requirements.txt": ("numpy\ntransformers==4.40.1\n# old\ntrl==0.7.11\n", 4),
    "pyproject.toml": (
        '[project]\nname = "x"\ndependencies = [\n "trl==0.7.11",\n "transformers==4.40.1",\n]\n',
        4,
    ),
    "environment.yml": (
        "name: x\ndependencies:\n  - pip:\n    - transformers==4.40.1\n    - trl==0.7.11\n",
        5,
    ),
    "train.yaml": ("stage: sft\nfinetuning_type: lora\nbf16: true\nfp16: true\n", 3),
    "train.log": (
        "step 1\n\nRuntimeError: CUDA error: no kernel image is available for execution on the device\n",
        3,
    ),
}
"""Files as they stand in repositories, and the line that a finding is about."""


class Object(NamedTuple):
    """What the SARIF schema says of an object: the members it must have, and those it may have."""

    required: str
    allowed: str


SARIF = {
    "": Object("version runs", "$schema"),
    "runs": Object("tool", "invocations results columnKind"),
    "tool": Object("driver", ""),
    "driver": Object("name", "version rules properties"),
    "rules": Object("id", "shortDescription defaultConfiguration"),
    "shortDescription": Object("text", ""),
    "defaultConfiguration": Object("", "level"),
    "invocations": Object("executionSuccessful", "exitCode toolExecutionNotifications"),
    "toolExecutionNotifications": Object("message", "level"),
    "results": Object(
        "message", "ruleId ruleIndex level locations relatedLocations partialFingerprints properties"
    ),
    "message": Object("text", ""),
    "locations": Object("", "physicalLocation logicalLocations"),
    "relatedLocations": Object("", "physicalLocation message"),
    "logicalLocations": Object("", "name kind"),
    "physicalLocation": Object("artifactLocation", "region"),
    "artifactLocation": Object("", "uri"),
    "region": Object("", "startLine"),
}
FREE = ("properties", "partialFingerprints")
LEVELS = {"none", "note", "warning", "error"}

JUNIT: dict[str, tuple[str, str, str]] = {
    "testsuites": ("", "name time tests failures errors", "testsuite"),
    "testsuite": ("name tests failures errors", "time skipped", "testcase"),
    "testcase": ("name", "time classname", "skipped error failure system-out"),
    "failure": ("", "type message", ""),
    "error": ("", "type message", ""),
    "skipped": ("", "type message", ""),
    "system-out": ("", "", ""),
}
"""An element's required and further attributes, and what may stand in it."""


def check_sarif(value: Any, name: str = "") -> None:
    if isinstance(value, list):
        for one in value:
            check_sarif(one, name)
    elif isinstance(value, dict):
        required, allowed = (set(words.split()) for words in SARIF[name])
        assert required <= set(value) <= required | allowed, name
        assert value.get("level", "none") in LEVELS
        for key, inner in value.items():
            if key not in FREE:
                check_sarif(inner, key)
    elif name == "uri":
        assert re.fullmatch(r"[A-Za-z0-9._~/%:-]+", value)
    elif name in ("startLine", "ruleIndex", "exitCode"):
        assert isinstance(value, int)
        assert value >= (name == "startLine")


def check_junit(element: ET.Element) -> None:
    required, further, inside = (set(words.split()) for words in JUNIT[element.tag])
    assert required <= set(element.attrib) <= required | further, element.tag
    assert re.fullmatch(r"[0-9]*\.[0-9]{3}", element.get("time", "0.000"))
    for inner in element:
        assert inner.tag in inside
        check_junit(inner)


def findings() -> list[Any]:
    note = replace(ARCH, severity=Severity.NOTE, evidence=(), remedies=())
    odd = replace(ARCH, evidence=(Evidence("torch", "2.6", "a b/ü%[1].txt, line 3"),))
    return [diagnosis(), diagnosis(crashed=True), diagnosis(note, odd, BNB, SHM), diagnosis(note)]


@pytest.mark.parametrize("told", findings(), ids=range(len(findings())))
def test_sarif_and_junit_are_as_their_schemas_have_them(told):
    check_sarif(json.loads(render(told, "sarif")))
    check_junit(ET.fromstring(render(told, "junit")))


@pytest.mark.parametrize("name", TEXTS)
def test_each_format_names_the_file_and_the_line(tmp_path, monkeypatch, name):
    text, line = TEXTS[name]
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    found = diagnose([name])
    told = {format: render(found, format) for format in ("sarif", "junit", "github")}
    check_sarif(json.loads(told["sarif"]))
    check_junit(ET.fromstring(told["junit"]))
    first = json.loads(told["sarif"])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert first == {"artifactLocation": {"uri": name}, "region": {"startLine": line}}
    assert f",file={name},line={line}::" in told["github"].splitlines()[0]
    failures = [why.get("message") for why in ET.fromstring(told["junit"]).iter("failure")]
    assert any(message.startswith(f"{name}:{line}: ") for message in failures)


def test_a_finding_stands_where_its_remedy_is_to_be_written():
    finding = replace(
        ARCH,
        evidence=(Evidence("driver", "525", "line 1"), Evidence("torch", "2.6", "line 7")),
    )
    assert place_of(finding, ["freeze.txt"]) == ("freeze.txt", 7)
    result = json.loads(
        render(replace(diagnosis(finding), examined=Examined("freeze.txt", ("freeze.txt",))), "sarif")
    )["runs"][0]["results"][0]
    assert [r["message"]["text"] for r in result["relatedLocations"]] == ["driver 525"]


def test_what_has_no_line_stands_at_the_top_of_the_file_examined():
    seen = replace(ARCH, evidence=(Evidence("GPU", "Tesla T4", "declared"),))
    told = replace(diagnosis(seen), examined=Examined("freeze.txt", ("freeze.txt",)))
    result = json.loads(render(told, "sarif"))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "freeze.txt"}
