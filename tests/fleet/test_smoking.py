"""Smokes on nodes: verdicts become findings; an all-reduce over all nodes, shown with torch's CPU backend."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import cluster, merged

from envdoctor.fleet.assembly import answer
from envdoctor.fleet.reply import Reply, Take
from envdoctor.fleet.smoking import pack_ranks, read_smokes, run_collective
from envdoctor.fleet.transports.clustershell import run_on_hosts

NODES = ("node1", "node2", "node3")


def test_an_op_that_fails_alike_is_one_finding_with_its_nodes() -> None:
    nodes = cluster(4)
    for number, name in enumerate(("node002", "node004"), 7):
        nodes[name]["verdicts"] = [
            failed("matmul.bf16", f"output 0 is off by 0.9, tolerance 0.01 (seed {number})"),
            {"op": "sdpa.flash", "outcome": "passed", "source": "smoke"},
        ]
    told = answer(merged(nodes))
    (found,) = [one for one in told.findings if one.finding.id == "SMOKE-FAILED"]
    assert found.nodes == ("node002", "node004")
    assert "matmul.bf16" in found.finding.summary
    assert len(told.groups) == 2


def test_what_dcgm_fails_is_a_finding_of_its_own() -> None:
    nodes = cluster(4)
    nodes["node003"]["verdicts"] = [failed("dcgm.memory", "DCGM: GPU 1: Uncorrectable ECC error.")]
    found = [one for one in answer(merged(nodes)).findings if one.nodes == ("node003",)]
    assert [(one.finding.id, one.finding.summary) for one in found] == [
        ("DCGM-FAILED", "dcgm.memory: DCGM: GPU 1: Uncorrectable ECC error.")
    ]


def failed(op: str, reason: str) -> dict[str, str]:
    return {"op": op, "outcome": "failed", "source": "smoke", "reason": reason}


def test_what_smokes_need_travels_whole(faults: None, tmp_path: Path) -> None:
    """In a Python that has nothing of ours: the archive alone, unpacked, runs."""
    zipfile.ZipFile(io.BytesIO(read_smokes())).extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from envdoctor.smokes import run_smokes\n"
        "from envdoctor.facts.codec import encode\n"
        f"report = run_smokes({sys.executable!r}, ('fault.none', 'fault.speed'), 'cpu')\n"
        "print([r.outcome for r in report.results], encode(report.results[1].speed)['unit'])\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['passed', 'skipped'] GB/s\n", "")


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__).parents[1] / "smokes"
    monkeypatch.setenv("PYTHONPATH", f"{here / 'plugins'}{os.pathsep}{here / 'fake_torch'}")


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
