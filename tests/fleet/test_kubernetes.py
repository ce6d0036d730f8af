"""Kubernetes through a kubectl that this test stands in for: it runs each Job's command here."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from envdoctor.fleet.carriage import pack
from envdoctor.fleet.smoking import read_smokes
from envdoctor.fleet.transports.kubernetes import JobSettings, manifest, parse_nodes, state_of

KUBECTL = """#!{python}
import base64, json, os, subprocess, sys
folder = {folder!r}
verb = sys.argv[1]
with open(folder + "/calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
def node(name, ready):
    condition = {{"type": "Ready", "status": ready, "message": "Kubelet stopped posting"}}
    return {{"metadata": {{"name": name}}, "status": {{"conditions": [condition]}}}}
if verb == "get" and sys.argv[2] == "nodes":
    print(json.dumps({{"items": [node("gpu-1", "True"), node("gpu-2", "True"), node("gpu-3", "Unknown"),
                                 node("gpu-4", "True")]}}))
elif verb == "create":
    items = json.load(sys.stdin)["items"]
    data = base64.b64decode(items[0]["binaryData"]["probe"])
    pods = []
    for job in items[1:]:
        template = job["spec"]["template"]
        spec, name = template["spec"], job["metadata"]["name"]
        where = spec["nodeSelector"]["kubernetes.io/hostname"]
        pod = {{"metadata": {{"name": name + "-x", "labels": template["metadata"]["labels"]}}}}
        if where == "gpu-4":
            waiting = {{"reason": "ImagePullBackOff", "message": "no such image"}}
            pod["status"] = {{"phase": "Pending", "containerStatuses": [{{"state": {{"waiting": waiting}}}}]}}
        else:
            command = spec["containers"][0]["command"]
            command[-1] = command[-1].split(" < ")[0]
            done = subprocess.run(command, input=data, capture_output=True)
            with open(folder + "/" + name + "-x.log", "wb") as log:
                log.write(done.stdout + done.stderr)
            ended = {{"terminated": {{"exitCode": done.returncode}}}}
            phase = "Failed" if done.returncode else "Succeeded"
            pod["status"] = {{"phase": phase, "containerStatuses": [{{"state": ended}}]}}
        pods.append(pod)
    json.dump({{"items": pods}}, open(folder + "/pods", "w"))
elif verb == "get":
    print(open(folder + "/pods").read())
elif verb == "logs":
    sys.stdout.write(open(folder + "/" + sys.argv[2] + ".log").read())
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    path = tmp_path / "kubectl"
    path.write_text(KUBECTL.format(python=sys.executable, folder=str(tmp_path)))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def test_every_node_is_answered_for_and_the_jobs_are_deleted(kubectl: Path) -> None:
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "envdoctor",
                "fleet",
                "--kubernetes",
                "--image",
                "stack:1",
                "--deadline",
                "4",
            ),
            *("--python", sys.executable, "--format", "json", "--select", "XID"),
        ],
        env={**os.environ, "PATH": f"{kubectl}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert [group["nodes"] for group in told["groups"]] == ["gpu-[1-2]"]
    reasons = {one["nodes"]: one["reason"] for one in told["unreached"]}
    assert reasons["gpu-3"] == "Kubernetes says it is not ready: Kubelet stopped posting"
    assert reasons["gpu-4"] == "no answer within 4 s: ImagePullBackOff no such image"
    calls = (kubectl / "calls").read_text().splitlines()
    assert calls[-1].startswith("delete jobs,configmaps --selector=envdoctor-run=")


def test_each_job_is_bound_to_its_node_and_ends_by_itself() -> None:
    settings = JobSettings("stack:1", gpus=8)
    told = manifest(["gpu-1", "gpu-2"], pack(30, None), settings, "envdoctor-ab12", 30)
    probe, first, _ = told["items"]
    assert len(probe["binaryData"]["probe"]) < 1 << 20
    spec = first["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert first["spec"]["activeDeadlineSeconds"] == 30
    assert first["spec"]["backoffLimit"] == 0


@pytest.mark.parametrize("version", ["1.25", "1.30", "1.34"])
def test_what_is_created_is_what_kubernetes_takes(version: str) -> None:
    told = manifest(
        ["gpu-1"], pack(30, None, read_smokes()), JobSettings("stack:1", gpus=8), "envdoctor-ab12", 30
    )
    for item in told["items"]:
        kubernetes_validate.validate(item, version, strict=True)
    assert len(json.dumps(told["items"][0])) < 1 << 20


def test_pods_meet_the_restricted_profile() -> None:
    """Each control of the profile "restricted" of Kubernetes' pod security standards."""
    spec = pod(JobSettings("stack:1"))
    inside = spec["containers"][0]["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert all(set(volume) <= {"name", "configMap", "emptyDir"} for volume in spec["volumes"])
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert inside["readOnlyRootFilesystem"] is True


def test_root_is_only_what_was_asked_for() -> None:
    spec = pod(JobSettings("stack:1", user=0))
    assert spec["securityContext"]["runAsNonRoot"] is False
    assert spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False


def pod(settings: JobSettings) -> dict[str, Any]:
    told = manifest(["gpu-1"], pack(30, None), settings, "envdoctor-ab12", 30)
    spec: dict[str, Any] = told["items"][1]["spec"]["template"]["spec"]
    return spec


def test_words_of_kubernetes() -> None:
    assert parse_nodes('{"items": [{"metadata": {"name": "a"}, "status": {}}]}') == {
        "a": "Kubernetes says it is not ready: no word"
    }
    assert state_of({"status": {"phase": "Pending"}}) == "Pending"
