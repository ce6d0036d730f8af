"""What uv says where a lock has no solution: whose wishes clash, in which part, and what ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envdoctor.cli import main


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> dict[str, Any]:
    (tmp_path / "lock.txt").write_text(text, encoding="utf-8")
    assert main(["diagnose", "--from", str(tmp_path / "lock.txt"), "--format", "json"]) == 1
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


SPLIT = """\
  × No solution found when resolving dependencies for split (markers: sys_platform == 'darwin'):
  ╰─▶ Because fork==1.2 depends on torch==2.6.0 and app[train] depends on torch>=2.7.0,
      we can conclude that fork==1.2 and app[train] are incompatible.
      And because app[serve] depends on fork==1.2 and your project requires app[serve] and
      app[train], we can conclude that your project's requirements are unsatisfiable.
"""


def test_two_extras_that_clash_are_declared_as_conflicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = told(tmp_path, capsys, SPLIT)
    clash = document["findings"][0]
    assert clash["id"] == "PIP-CLASH"
    assert "fork==1.2 wants ==2.6.0, app[train] wants >=2.7.0" in clash["summary"]
    assert "sys_platform == 'darwin'" in clash["cause"]
    first, second = clash["remedies"][:2]
    assert 'conflicts = [[{ extra = "train" }, { extra = "serve" }]]' in first["text"]
    assert "environments" in second["text"]
    assert all(not remedy["pins"] for remedy in clash["remedies"]), (
        "nothing is installed that a pin could change"
    )


def test_what_a_lock_was_to_hold_is_not_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, capsys, SPLIT)["facts"].get("environment") is None


@pytest.mark.parametrize(
    ("because", "identity"),
    [
        ("you require shelf==2.1 and shelf==2.2", "PIP-CLASH"),
        ("your project depends on shelf==2.1 and shelf==2.2", "PIP-CLASH"),
        ("app:dev depends on shelf>=2 and app:test depends on shelf<2", "PIP-CLASH"),
        ("there is no version of shelf==9.9 and you require shelf==9.9", "UV-RELEASE-ABSENT"),
        ("only shelf<=1.2 is available and you require shelf>1.2", "UV-RELEASE-ABSENT"),
        ("shelf was not found in the package registry and you require shelf", "UV-RELEASE-ABSENT"),
        ("shelf==2.4.0 was yanked (reason: broken) and you require shelf==2.4.0", "UV-YANKED"),
        ("your project depends on itself at an incompatible version (app==0.2.0)", "UV-SHADOWED"),
        ("all versions of shelf have no usable wheels and you require shelf", "UV-NO-WHEEL"),
    ],
)
def test_each_clause_names_its_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], because: str, identity: str
) -> None:
    head = "  × No solution found when resolving dependencies:\n  ╰─▶ "
    text = f"{head}Because {because}, we can conclude that your requirements are unsatisfiable.\n"
    findings = told(tmp_path, capsys, text)["findings"]
    assert [f["id"] for f in findings if not f["consequence_of"]] == [identity]
