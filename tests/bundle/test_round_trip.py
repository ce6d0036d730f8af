from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from envdoctor.bundling import Redactor, build_bundle, read_bundle, read_contents, write_bundle
from envdoctor.bundling.archive import pack
from envdoctor.bundling.excerpts import LogExcerpt
from envdoctor.bundling.sharing import redact_diagnosis
from envdoctor.diagnosis import diagnose_facts
from envdoctor.facts import Distribution, Environment, Facts, Gpu, Host, Observed, Setting, from_json
from envdoctor.matrix import load_matrix

MATRIX = load_matrix()
MACHINES = sorted((Path(__file__).parents[1] / "machines").glob("*.json"))
EACH = int(os.environ.get("ENVDOCTOR_BUNDLED_EACH", "2"))
"""Every which machine is bundled: their findings are judged whole elsewhere, a bundle's way is one."""
LOG = LogExcerpt(((1, "HF_TOKEN=hf_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h at /home/katharina/x"),), 1, 60)


def machine(path: Path) -> Facts:
    return from_json(json.loads(path.read_text()))


@pytest.mark.parametrize("path", MACHINES[::EACH], ids=[m.stem for m in MACHINES[::EACH]])
def test_a_bundle_gives_the_findings_of_its_machine(path, tmp_path):
    diagnosis = diagnose_facts(machine(path), MATRIX)
    write_bundle(tmp_path / "b.zip", build_bundle(diagnosis, {"train.log": LOG}))
    again = diagnose_facts(read_bundle(tmp_path / "b.zip"), MATRIX)
    redactor = Redactor()
    assert again.findings == redact_diagnosis(diagnosis, redactor).findings
    assert [(c.rule, c.outcome) for c in again.checks] == [(c.rule, c.outcome) for c in diagnosis.checks]
    stored = read_contents(tmp_path / "b.zip").diagnosis
    assert stored is not None
    assert [f["id"] for f in stored["findings"]] == [f.id for f in diagnosis.findings]


def bundled(facts: Facts, first_ms: float) -> bytes:
    smokes = {"results": [{"first_ms": first_ms}]}
    return pack(build_bundle(diagnose_facts(facts, MATRIX), {"train.log": LOG}, smokes).files)


@pytest.mark.parametrize("name", ["h200-x2-deepspeed-without-pydantic", "healthy-t4-driver580-vllm"])
def test_two_runs_on_the_same_facts_give_the_same_bytes(name):
    facts = machine(MACHINES[0].with_name(f"{name}.json"))
    assert bundled(facts, 1.5) == bundled(facts, 2.5)


def private_facts() -> Facts:
    return Facts(
        host=Host(hostname=Observed("kepler-lab-07", "socket")),
        gpus=Observed(
            (
                Gpu(
                    0,
                    "NVML",
                    name="NVIDIA H200",
                    uuid="GPU-1a2b3c4d-0000-1111-2222-333344445555",
                    serial="1652922001234",
                    processes=(
                        {
                            "pid": 7,
                            "user": "katharina",
                            "command": "python /home/katharina/run.py --token abc123def456",
                        },
                    ),
                ),
            ),
            "NVML",
        ),
        environment=Environment(executable=Observed("/home/katharina/venv/bin/python", "probe")),
        variables={"NCCL_SOCKET_IFNAME": "eth0", "MASTER_ADDR": "10.1.2.3", "MY_API_KEY": "qwertyuiop12"},
        settings=(Setting("hub_token", "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h", "train.yaml, line 3"),),
        notes=("seen on kepler-lab-07 by katharina, key qwertyuiop12",),
    )


def test_no_file_of_a_bundle_tells_who_or_where():
    bundle = build_bundle(diagnose_facts(private_facts(), MATRIX), {"/home/katharina/train.log": LOG})
    for name, content in bundle.files.items():
        text = name + content.decode()
        for private in (
            "katharina",
            "kepler-lab",
            "1a2b3c4d",
            "1652922001234",
            "10.1.2.3",
            "qwertyuiop12",
            "abc123def456",
            "hf_aB3d",
        ):
            assert private not in text, (name, private)
    assert "NVIDIA H200" in bundle.files["facts.json"].decode()
    summary = json.loads(bundle.files["MANIFEST.json"])["redactions"]
    assert {"user", "host", "gpu-uuid", "serial", "ip", "secret"} <= set(summary)


def test_the_same_name_has_the_same_placeholder_in_every_file():
    bundle = build_bundle(diagnose_facts(private_facts(), MATRIX), {"train.log": LOG})
    assert "/home/<user-1>/x" in bundle.files["logs/01-train.log"].decode()
    assert "/home/<user-1>/venv/bin/python" in bundle.files["facts.json"].decode()


def test_the_manifest_lists_every_file_with_its_digest(tmp_path):
    write_bundle(tmp_path / "b.zip", build_bundle(diagnose_facts(private_facts(), MATRIX), {"a b.log": LOG}))
    contents = read_contents(tmp_path / "b.zip")
    assert set(contents.manifest["files"]) == {"report.md", "facts.json", "diagnosis.json", "logs/01-a-b.log"}


def test_a_diagnosis_shared_keeps_what_it_found():
    diagnosis = diagnose_facts(private_facts(), MATRIX)
    shared = redact_diagnosis(diagnosis)
    assert [f.id for f in shared.findings] == [f.id for f in diagnosis.findings]
    assert shared.exit_code == diagnosis.exit_code


def test_a_user_with_a_packages_name_takes_nothing_from_the_package():
    named = Facts(
        environment=Environment(
            executable=Observed("/home/peft/venv/bin/python", "probe"),
            distributions={"peft": Distribution("peft", "pip list", "0.17.1")},
        )
    )
    shared = redact_diagnosis(diagnose_facts(named, MATRIX)).facts
    assert shared.distribution("peft") == named.distribution("peft")
    assert shared.environment.executable.get() == "/home/<user-1>/venv/bin/python"


def test_half_a_surrogate_pair_is_packed():
    bundle = build_bundle(diagnose_facts(Facts(notes=("cut in a pair: \ud800",)), MATRIX), {"a.log": LOG})
    assert all(content.decode() for content in bundle.files.values())
