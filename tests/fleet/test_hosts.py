"""Real hosts over ssh: one with another driver, one dead, one that hangs, one that answers garbage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ssh_hosts import Host, ssh_hosts, why_not

pytestmark = pytest.mark.root

HOSTS = {
    "node1": Host("580.95.05"),
    "node2": Host("580.95.05"),
    "node3": Host("580.95.05"),
    "node4": Host("570.133.20"),
    "node5": Host("580.95.05", dead=True),
    "node6": Host("580.95.05", forced="sleep 600"),
    "node7": Host("580.95.05", forced="echo Welcome to node7"),
}


def test_every_host_is_answered_for(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with ssh_hosts(tmp_path, HOSTS) as hosts:
        done = hosts.run(
            [
                *(sys.executable, "-m", "envdoctor", "fleet", "--hosts", "node[1-7]", "--deadline", "10"),
                *("--python", sys.executable, "--format", "json"),
                *(f"--launcher-arg=-F{hosts.ssh_config}", "--select", "XID"),
            ]
        )
        left = hosts.run(["sh", "-c", "ls /tmp | grep -i envdoctor"]).stdout
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["nodes"] == 7
    assert [(g["nodes"]) for g in told["groups"]] == ["node[1-3]", "node4"]
    driver = next(d for d in told["drift"] if d["fact"] == "driver")
    assert [(v["value"], v["nodes"]) for v in driver["values"]] == [
        ("580.95.05", "node[1-3]"),
        ("570.133.20", "node4"),
    ]
    reasons = {one["nodes"]: one["reason"] for one in told["unreached"]}
    assert "Connection refused" in reasons["node5"]
    assert reasons["node6"] == "no answer within 10 s"
    assert reasons["node7"] == "it answered no facts but 'Welcome to node7'"
    assert "node" not in left
