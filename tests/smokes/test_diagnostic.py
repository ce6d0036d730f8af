"""DCGM's diagnostic: both forms of its JSON, and everything that is none."""

from __future__ import annotations

import json
import stat

import pytest

from envdoctor.smokes.dcgm import parse_diagnostic, read_diagnostic


def document(root, *tests):
    return json.dumps({root: {"test_categories": [{"category": "Deployment", "tests": list(tests)}]}})


def test_of(name, *results):
    return {"name": name, "results": list(results)}


test_of.__test__ = False
# DCGM 3.x, as its own tests record it: a banner, `gpu_ids`, and nulls between the tests.
FAILED = {"gpu_ids": "1", "status": "Fail", "warnings": "ECC"}
OLD = "WARNING: THIS SHOULD NOT HAPPEN\n" + document(
    "DCGM GPU Diagnostic",
    test_of("Denylist", {"gpu_ids": "0,1", "status": "PASS"}),
    None,
    test_of("Persistence Mode", {"gpu_ids": "0,1", "status": "Skip"}),
    test_of(
        "Memory", {"gpu_ids": "0", "status": "Pass"}, {"gpu_ids": "1", "status": "Fail", "warnings": "ECC"}
    ),
)
SETTING = {
    "error_category": 8,
    "error_id": 29,
    "error_severity": 5,
    "warning": "Persistence mode is disabled.",
}
BROKEN = {"error_category": 10, "error_id": 35, "error_severity": 2, "warning": "Uncorrectable ECC error."}
# DCGM 4.x, as `dcgmi diag -r 1 -j` of 4.2.3 wrote it.
NEW = document(
    "DCGM Diagnostic",
    test_of("software", {"entity_group": "GPU", "entity_id": 0, "status": "Fail", "warnings": [SETTING]}),
    test_of(
        "memory", {"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [SETTING, BROKEN]}
    ),
    test_of("pcie", {"entity_group": "GPU", "entity_id": 0, "status": "Not Run"}),
    test_of("eud"),
)


def told(text):
    return {one.op: (one.outcome, one.reason) for one in parse_diagnostic(text)}


def test_the_form_of_3():
    assert told(OLD) == {
        "dcgm.denylist": ("passed", None),
        "dcgm.persistence_mode": ("skipped", "DCGM: GPU 0,1: Skip"),
        "dcgm.memory": ("failed", "DCGM: GPU 1: ECC"),
    }


def test_the_form_of_4_and_a_setting_is_no_fault():
    found = told(NEW)
    setting = "DCGM fails it for a setting: GPU 0: Persistence mode is disabled."
    assert found["dcgm.software"] == ("skipped", setting)
    assert found["dcgm.memory"][0] == "failed"
    assert "Uncorrectable ECC error." in found["dcgm.memory"][1]
    assert found["dcgm.pcie"] == ("skipped", "DCGM: GPU 0: Not Run")
    assert found["dcgm.eud"] == ("skipped", "DCGM: no result")


@pytest.mark.parametrize(
    "text", ["", "Error: unable to connect", "{not json", "[]", '{"DCGM Diagnostic": 3}']
)
def test_what_is_no_diagnostic_is_no_pass(text):
    assert told(text) == {}


@pytest.fixture
def dcgmi(tmp_path, monkeypatch):
    def write(script: str) -> None:
        path = tmp_path / "dcgmi"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return write


def test_it_is_asked_where_it_is(dcgmi, tmp_path, monkeypatch):
    (tmp_path / "answer").write_text(NEW)
    dcgmi(f'[ "$*" = "diag --run 1 --json" ] && cat {tmp_path}/answer; exit 226')
    assert len(read_diagnostic(20.0)) == 4
    monkeypatch.setenv("PATH", "/nowhere")
    assert read_diagnostic(20.0) == ()


def test_no_verdict_and_no_answer_are_told(dcgmi):
    dcgmi("echo 'Error: unable to establish a connection to the specified host: localhost'; exit 1")
    (found,) = read_diagnostic(20.0)
    assert found.outcome == "skipped"
    assert "status 1" in found.reason
    assert "unable to establish a connection" in found.reason
    dcgmi("exec sleep 60")
    (late,) = read_diagnostic(0.3)
    assert (late.op, late.outcome) == ("dcgm", "timeout")
