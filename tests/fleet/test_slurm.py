"""Slurm for real where its daemons are installed, and its words read everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from slurm_cluster import missing_programs, slurm_cluster

from envdoctor.fleet.carriage import Cargo
from envdoctor.fleet.reply import Reply
from envdoctor.fleet.transports.slurm import Step, parse_sinfo, srun_command

NODES = 16


@pytest.mark.slurm
@pytest.mark.root
def test_sixteen_nodes_answer_and_a_dead_one_is_named(tmp_path: Path) -> None:
    if missing := missing_programs():
        pytest.skip(f"Slurm is not installed: {', '.join(missing)}")
    command = [sys.executable, "-m", "envdoctor", "fleet", "--slurm", "--format", "json", "--deadline", "60"]
    command += ["--python", sys.executable, "--select", "XID"]
    with slurm_cluster(tmp_path, NODES) as cluster:
        whole = json.loads(_output(command, cluster.environ, 0))
        cluster.ask("scontrol", "update", "NodeName=node009", "State=DOWN", "Reason=fan broken")
        cluster.stop_node("node003")
        partial = json.loads(_output(command, cluster.environ, 1))
    assert [group["nodes"] for group in whole["groups"]] == ["node[001-016]"]
    assert whole["unreached"] == []
    assert [group["nodes"] for group in partial["groups"]] == ["node[001-002,004-008,010-016]"]
    reasons = {one["nodes"]: one["reason"] for one in partial["unreached"]}
    assert reasons["node009"] == "Slurm says it is down (fan broken)"
    assert "Slurm could not start the probe there" in reasons["node003"]


def _output(command: list[str], environ: dict[str, str], expected: int) -> str:
    done = subprocess.run(
        command, env=dict(environ), capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == expected, done.stderr
    return done.stdout


def test_nodes_that_slurm_holds_back_are_answers() -> None:
    nodes = parse_sinfo(
        "node001|idle|none\nnode002|mixed|none\nnode003|down*|Not responding\nnode004|drained|bad DIMM\n"
        "node005|allocated|none\nnode001|idle|none\n"
    )
    assert nodes.free == ("node001", "node002")
    assert nodes.unreachable == {
        "node003": "Slurm says it is down and does not respond (Not responding)",
        "node004": "Slurm says it is drained (bad DIMM)",
        "node005": "Slurm says it is allocated",
    }


def test_one_task_a_node_and_none_ends_the_others() -> None:
    command = srun_command("/tmp/nodes", 512, Cargo("python3 -", b"").command, 60)
    assert {"--nodes=512", "--ntasks-per-node=1", "--no-kill", "--kill-on-bad-exit=0"} <= set(command)
    assert command[-3:] == ["sh", "-c", "python3 -"]


def hear(*lines: str, nodes: int = 4) -> tuple[list[Reply], Step]:
    replies: list[Reply] = []
    step = Step({f"node{n}" for n in range(1, nodes + 1)}, replies.append)
    for line in lines:
        step.hear("stderr", line.encode())
    return replies, step


def test_how_tasks_ended_is_told_of_their_nodes() -> None:
    replies, step = hear(
        "1: sh: 1: python3: not found",
        "2: Traceback (most recent call last):",
        "2: MemoryError",
        "srun: error: node2: task 1: Exited with exit code 127",
        "srun: error: node3: task 2: Exited with exit code 1",
        "srun: error: node[1,4]: tasks 0,3: Killed",
    )
    step.settle(last=True, deadline_s=9)
    assert {reply.node: reply.reason for reply in replies} == {
        "node1": "the probe was ended: Killed",
        "node2": "no Python there: sh: 1: python3: not found",
        "node3": "the probe ended with status 1: MemoryError",
        "node4": "the probe was ended: Killed",
    }


def test_after_a_failed_launch_the_others_wait_to_be_asked_again() -> None:
    replies, step = hear(
        "srun: error: Task launch for StepId=2.0 failed on node node3: Communication connection failure",
        "srun: error: Application launch failed: Communication connection failure",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        "srun: error: node[1-2,4]: tasks 0-1,3: Killed",
    )
    step.settle(last=False, deadline_s=9)
    assert [reply.node for reply in replies] == ["node3"]
    assert step.waiting == {"node1", "node2", "node4"}
