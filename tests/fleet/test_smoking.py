"""Smokes on nodes: verdicts become findings; an all-reduce over all nodes, shown with torch's CPU backend."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable

import pytest
from clusters import cluster, merged

from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.smoking import pack_ranks, read_smokes, run_collective, smoke_findings
from envdoctor.fleet.transports.clustershell import run_on_hosts

NODES = ("node1", "node2", "node3")


def test_an_op_that_fails_alike_is_one_finding_with_its_nodes() -> None:
    nodes = cluster(4)
    for name in ("node002", "node004"):
        nodes[name]["verdicts"] = [
            {"op": "matmul.bf16", "outcome": "failed", "source": "smoke", "reason": "error 0.9 above 0.01"},
            {"op": "sdpa.fp16", "outcome": "passed", "source": "smoke"},
        ]
    (found,) = smoke_findings(merged(nodes).result()[0])
    assert found.nodes == ("node002", "node004")
    assert found.finding.summary == "matmul.bf16 failed: error 0.9 above 0.01"


def test_what_smokes_need_travels_whole() -> None:
    import io
    import zipfile

    names = set(zipfile.ZipFile(io.BytesIO(read_smokes())).namelist())
    assert {"envdoctor/smokes/worker.py", "envdoctor/smokes/ops/matmul.py", "envdoctor/processes.py"} <= names


def replies(*told: dict[str, object] | None) -> Callable[[Take], None]:
    def ask(take: Take) -> None:
        for node, one in zip(NODES, told, strict=False):
            take(
                Reply(node, None if one is None else json.dumps(one).encode(), "dead" if one is None else "")
            )

    return ask


PASSED = {"outcome": "passed", "reason": None, "ranks": 8}


def test_the_all_reduce_passes_only_when_every_node_did() -> None:
    assert run_collective(replies(PASSED, PASSED, PASSED), NODES).ranks == 24
    failed = run_collective(
        replies(PASSED, {"outcome": "failed", "reason": "GPU 3: hung", "ranks": 8}), NODES
    )
    assert (failed.outcome, failed.reason) == ("failed", "node2: GPU 3: hung")
    assert run_collective(replies(PASSED, None), NODES).reason == "node2: dead"
    skipped = run_collective(replies({"outcome": "skipped", "reason": "no GPU there", "ranks": 0}), NODES)
    assert skipped.outcome == "skipped"


@pytest.mark.torch
@pytest.mark.slow
def test_ranks_of_several_nodes_meet_and_reduce() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    cargo = pack_ranks(sys.executable, 60, "127.0.0.1", 29_541, len(NODES), "gloo")
    collective = run_collective(
        lambda take: run_on_hosts(NODES, cargo, take, deadline_s=60, fanout=3, worker="exec"), NODES
    )
    assert (collective.outcome, collective.reason, collective.ranks) == ("passed", None, 3)
