"""Kubernetes: one Job a node, each bound to it, through `kubectl`; all of it is deleted again at the end."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from envdoctor.errors import Unavailable
from envdoctor.fleet.carriage import Cargo, Frames
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.transports.reasons import last_line, reply_of
from envdoctor.inputs import parse_json
from envdoctor.processes import run_child
from envdoctor.values import dataclass

_ASK_LIMIT_S = 60.0
_POLL_S = 1.0
_LABEL = "envdoctor-run"
MAX_PROBE_BYTES = (1 << 20) * 3 // 4
"""What a ConfigMap of 1 MiB holds in base64, should its size be counted so."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """How the Jobs are made: the image that holds what is examined, and how many GPUs each asks for."""

    image: str
    namespace: str = "default"
    gpus: int = 0
    selector: str = ""
    user: int = 65534
    """Whom the probe runs as; 0 where a card's devices are root's alone, which "restricted" forbids."""


def find_nodes(settings: JobSettings) -> dict[str, str | None]:
    """Return the cluster's nodes, each with why it cannot be asked, or None; raises Unavailable."""
    selector = [f"--selector={settings.selector}"] if settings.selector else []
    return parse_nodes(_asked(["get", "nodes", "--output=json", *selector]))


def parse_nodes(text: str) -> dict[str, str | None]:
    """Read `kubectl get nodes --output=json`."""
    nodes: dict[str, str | None] = {}
    for item in _items(text):
        conditions = item.get("status", {}).get("conditions", ())
        ready: Mapping[str, Any] = next((c for c in conditions if c.get("type") == "Ready"), {})
        reason = None
        if ready.get("status") != "True":
            reason = (
                f"Kubernetes says it is not ready: {ready.get('message') or ready.get('reason') or 'no word'}"
            )
        nodes[item["metadata"]["name"]] = reason
    return nodes


def _items(text: str) -> list[Mapping[str, Any]]:
    """Return the items of kubectl's list that are named; raises Unavailable for what is no list."""
    try:
        items = parse_json(text)["items"]
        return [item for item in items if isinstance(item["metadata"]["name"], str)]
    except (ValueError, LookupError, TypeError):
        raise Unavailable("kubectl get: its answer is no list") from None


def manifest(
    nodes: Sequence[str], cargo: Cargo, settings: JobSettings, run: str, deadline_s: float
) -> dict[str, Any]:
    """Return what is created: the probe as a ConfigMap, and for each node a Job that is bound to it."""
    labels = {_LABEL: run}
    probe = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": run, "labels": labels},
        "binaryData": {"probe": base64.b64encode(cargo.stdin).decode()},
    }
    jobs = [_job(node, f"{run}-{n}", cargo, settings, run, deadline_s) for n, node in enumerate(nodes)]
    return {"apiVersion": "v1", "kind": "List", "items": [probe, *jobs]}


def _job(
    node: str, name: str, cargo: Cargo, settings: JobSettings, run: str, deadline_s: float
) -> dict[str, Any]:
    labels = {_LABEL: run}
    container: dict[str, Any] = {
        "name": "probe",
        "image": settings.image,
        "command": ["sh", "-c", f"{cargo.command} < {shlex.quote('/envdoctor/probe')}"],
        "volumeMounts": [
            {"name": "probe", "mountPath": "/envdoctor", "readOnly": True},
            {"name": "temporary", "mountPath": "/tmp"},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if settings.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(settings.gpus)}}
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": settings.user != 0,
            "runAsUser": settings.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "probe", "configMap": {"name": run}},
            {"name": "temporary", "emptyDir": {"sizeLimit": "256Mi"}},
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": max(1, round(deadline_s)),
            "ttlSecondsAfterFinished": 600,
            "template": {"metadata": {"labels": {**labels, "envdoctor-job": name}}, "spec": pod},
        },
    }


def run_in_kubernetes(
    nodes: Mapping[str, str | None], cargo: Cargo, take: Take, settings: JobSettings, *, deadline_s: float
) -> None:
    """Run the cargo on every ready node and hand over each reply; raises Unavailable."""
    for name, reason in nodes.items():
        if reason is not None:
            take(Reply(name, None, reason))
    ready = [name for name, reason in nodes.items() if reason is None]
    if len(cargo.stdin) > MAX_PROBE_BYTES:
        raise Unavailable(f"the probe has {len(cargo.stdin)} bytes, a ConfigMap holds {MAX_PROBE_BYTES}")
    run = f"envdoctor-{secrets.token_hex(4)}"
    applied = json.dumps(manifest(ready, cargo, settings, run, deadline_s)).encode()
    space = f"--namespace={settings.namespace}"
    try:
        # not `apply`: it keeps a copy of all it is given in an annotation, which holds 256 KiB
        _asked(["create", "--filename=-", space], applied)
        _gather({f"{run}-{n}": node for n, node in enumerate(ready)}, run, space, take, deadline_s)
    finally:
        with contextlib.suppress(Unavailable):
            selected = f"--selector={_LABEL}={run}"
            _asked(["delete", "jobs,configmaps", selected, space, "--wait=false", "--ignore-not-found"])


def _gather(waiting: dict[str, str], run: str, space: str, take: Take, deadline_s: float) -> None:
    """Take each pod's log once the pod has ended."""
    deadline = time.monotonic() + deadline_s + 5
    states: dict[str, str] = {}
    while waiting and time.monotonic() < deadline:
        told = _asked(["get", "pods", f"--selector={_LABEL}={run}", space, "--output=json"])
        for pod in _items(told):
            job = pod["metadata"].get("labels", {}).get("envdoctor-job")
            if job not in waiting:
                continue
            states[job] = state_of(pod)
            if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                take(_reply(waiting.pop(job), pod, space))
        if waiting:
            time.sleep(_POLL_S)
    for job, node in waiting.items():
        take(Reply(node, None, f"no answer within {deadline_s:g} s: {states.get(job, 'no pod was made')}"))


def state_of(pod: Mapping[str, Any]) -> str:
    """Return what a pod waits for or how it ended, in Kubernetes' words."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses", ()):
        for kind in ("waiting", "terminated"):
            told = container.get("state", {}).get(kind)
            if told:
                return f"{told.get('reason', kind)} {told.get('message', '')}".strip()[:160]
    return f"{status.get('phase', 'unknown')} {status.get('message', '')}".strip()[:160]


def _reply(node: str, pod: Mapping[str, Any], space: str) -> Reply:
    try:
        log = _asked(["logs", pod["metadata"]["name"], space]).encode()
    except Unavailable as error:
        return Reply(node, None, str(error))
    frames = Frames()
    for line in log.splitlines():
        frames.add(line)
    ended = [c.get("state", {}).get("terminated", {}) for c in pod["status"].get("containerStatuses", ())]
    status = ended[0].get("exitCode") if ended else None
    return reply_of(node, frames, status, log if status else b"")


def _asked(arguments: Sequence[str], stdin: bytes = b"") -> str:
    done = run_child(["kubectl", *arguments], timeout_s=_ASK_LIMIT_S, stdin=stdin, max_bytes=64 << 20)
    if done.returncode != 0 or done.timed_out:
        reason = last_line(done.stderr.encode()) or f"no answer within {_ASK_LIMIT_S:g} s"
        raise Unavailable(f"kubectl {arguments[0]}: {reason}")
    return done.stdout
