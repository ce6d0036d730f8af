"""Slurm for real where its daemons are installed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing_programs, slurm_cluster

pytestmark = [pytest.mark.slurm, pytest.mark.root]
FLEET = [sys.executable, "-m", "envdoctor", "fleet", "--slurm", "--format", "json", "--select", "XID"]
PARTS = "PartitionName=old Nodes=node[001-004]\nPartitionName=new Nodes=node[005-016]\n"
SICK = f"""#!/bin/sh
case $SLURMD_NODENAME in
  node008) while :; do echo still here; sleep 1; done ;;
  node009) export SLURMD_NODENAME=node001 ;;
  node010) echo Welcome; exit 0 ;;
  node011) echo no disk >&2; exit 7 ;;
esac
exec {sys.executable} "$@"
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    if missing := missing_programs():
        pytest.skip(f"Slurm is not installed: {', '.join(missing)}")
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), 16, more=PARTS) as running:
        yield running


def told(cluster: SlurmCluster, expected: int, *arguments: str, **variables: str) -> dict[str, object]:
    done = subprocess.run(
        [*FLEET, "--python", sys.executable, *arguments],
        env={**cluster.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == expected, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def answered(answer: dict[str, object]) -> list[str]:
    return [group["nodes"] for group in answer["groups"]]  # type: ignore[attr-defined]


def reasons(answer: dict[str, object]) -> dict[str, str]:
    return {one["nodes"]: one["reason"] for one in answer["unreached"]}  # type: ignore[attr-defined]


def await_no_job(cluster: SlurmCluster) -> str:
    for _ in range(300):
        if not (left := cluster.ask("squeue", "--noheader", "--format=%i %T")):
            return left
        time.sleep(0.1)
    return left


def test_all_answer_and_their_job_is_gone(cluster: SlurmCluster) -> None:
    answer = told(cluster, 0)
    assert answered(answer) == ["node[001-016]"]
    assert answer["pools"] == [{"name": "new", "nodes": 12}, {"name": "old", "nodes": 4}]
    assert answer["unreached"] == []
    assert await_no_job(cluster) == ""


def test_within_a_job_its_nodes_are_asked_and_the_job_goes_on(cluster: SlurmCluster) -> None:
    within = subprocess.run(
        ["salloc", "--quiet", "--nodelist=node[003-005]", "--nodes=3", *FLEET, "--python", sys.executable],
        env=dict(cluster.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert answered(json.loads(within.stdout)) == ["node[003-005]"]
    assert await_no_job(cluster) == ""


def test_a_signal_ends_the_job_and_leaves_nothing(cluster: SlurmCluster, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 77.5\n")
    slow.chmod(0o755)
    folder = tmp_path / "temporary"
    folder.mkdir()
    environ = {**cluster.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([*FLEET, "--python", str(slow)], env=environ, stdout=subprocess.PIPE) as fleet:
        for _ in range(600):
            if cluster.ask("squeue", "--steps", "--noheader"):
                break
            time.sleep(0.1)
        fleet.send_signal(signal.SIGTERM)
        said = fleet.communicate(timeout=60)[0]
    assert (fleet.returncode, said) == (143, b"")
    assert await_no_job(cluster) == ""
    assert list(folder.iterdir()) == []
    assert not [pid for pid in running() if "sleep 77.5" in pid]


def running() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, UnicodeDecodeError):
            continue
    return found


@pytest.mark.slow
def test_sick_nodes_are_told_of_and_never_in_the_way_of_the_others(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text(SICK)
    wrapper.chmod(0o755)
    cluster.ask("scontrol", "update", "NodeName=node002", "State=DRAIN", "Reason=bad DIMM")
    cluster.ask("scontrol", "update", "NodeName=node003", "State=DOWN", "Reason=fan broken")
    now = ["StartTime=now", "Duration=60", "Users=root"]
    cluster.ask("scontrol", "create", "reservation", "ReservationName=week", *now, "Nodes=node004")
    full = ["--nodelist=node005", "sleep", "60"]
    with subprocess.Popen(["srun", *full], env=dict(cluster.environ), stdin=subprocess.DEVNULL) as job:
        for _ in range(100):
            if "allocated" in cluster.ask("sinfo", "--noheader", "--Node", "--format=%T", "--nodes=node005"):
                break
            time.sleep(0.1)
        cluster.kill_node("node006")
        cluster.freeze_node("node007")
        answer = told(cluster, 1, "--deadline", "8", "--python", str(wrapper))
        job.terminate()
    assert answered(answer) == ["node[001,012-016]"]
    why = reasons(answer)
    assert re.fullmatch(r"Slurm says it is allocated \(job \d+\)", why.pop("node005"))
    assert why.pop("node008").startswith("no answer within 8 s; it said 'still here")
    assert "Welcome" in why.pop("node010")
    assert why == {
        "node002": "Slurm says it is drained (bad DIMM)",
        "node003": "Slurm says it is down (fan broken)",
        "node004": "Slurm says it is reserved (reservation week)",
        "node[006-007]": "no answer within 8 s",
        "node009": "it answered in the name of node001, and only its own is believed",
        "node011": "the probe ended with status 7: no disk",
    }
