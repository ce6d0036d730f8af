"""A real Ray cluster of several raylets on this machine: the same answer as ClusterShell's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envdoctor.fleet.transports.ray_cluster import name_nodes

NODES = 3
START = """
import json, subprocess, sys
from ray.cluster_utils import Cluster
cluster = Cluster()
for number in range(1, int(sys.argv[1]) + 1):
    cluster.add_node(num_cpus=1, node_name=f"node{number}", include_dashboard=False)
cluster.wait_for_nodes()
done = subprocess.run([*sys.argv[2:], "--ray", cluster.address], capture_output=True, text=True)
sys.stderr.write(done.stderr)
print("ANSWER" + json.dumps([done.returncode, done.stdout]))
cluster.shutdown()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_raylets_give_the_answer_that_clustershell_gives(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    fleet = [sys.executable, "-m", "envdoctor", "fleet", "--format", "json", "--select", "XID"]
    fleet += ["--python", sys.executable]
    done = subprocess.run(
        [sys.executable, "-c", START, str(NODES), *fleet],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    line = next((one for one in done.stdout.splitlines() if one.startswith("ANSWER")), None)
    assert line, done.stderr[-2000:]
    status, answer = json.loads(line.removeprefix("ANSWER"))
    shell = subprocess.run(
        [*fleet, "--hosts", f"node[1-{NODES}]", "--worker", "exec"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert status == 0
    told, expected = json.loads(answer), json.loads(shell.stdout)
    assert [g["nodes"] for g in told["groups"]] == [g["nodes"] for g in expected["groups"]] == ["node[1-3]"]
    assert told["drift"] == expected["drift"] == []
    for section in ("driver", "gpus", "toolkits", "environment"):
        assert told["groups"][0]["facts"][section] == expected["groups"][0]["facts"][section]


SILENT = """
import os, sys, time, types
ray = types.ModuleType("ray")
def init(**_):
    os.write(1, b"Ray's banner")
    time.sleep(60)
ray.init = init
sys.modules["ray"] = ray
from envdoctor.cli import main
status = main(["fleet", "--ray", "10.0.0.1:6379", "--deadline", "1"])
sys.stdout.write("ours")
sys.stdout.flush()
os._exit(status)
"""


def test_a_cluster_that_does_not_answer_is_3_in_time_and_ray_keeps_off_our_stdout() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SILENT], capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stdout) == (3, "ours")
    assert done.stderr == "Ray's bannerenvdoctor: --ray 10.0.0.1:6379: no answer within 1 s\n"


def test_raylets_of_one_host_are_told_apart() -> None:
    nodes = [
        {"NodeID": "aa" * 28, "NodeName": "10.0.0.1", "Alive": True},
        {"NodeID": "bb" * 28, "NodeName": "10.0.0.1", "Alive": True},
        {"NodeID": "cc" * 28, "NodeName": "", "NodeManagerHostname": "gpu7", "Alive": True},
    ]
    assert list(name_nodes(nodes)) == ["10.0.0.1", "10.0.0.1-bbbbbbbb", "gpu7"]
