"""Ranks of a Slurm step, each under watch, meet in a folder and are read together while they run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from slurm_cluster import missing_programs, slurm_cluster

pytestmark = [pytest.mark.slurm, pytest.mark.root]
WATCH = [sys.executable, "-m", "envdoctor", "watch"]
TRAINS = """
import os, sys, time
for step in range(1, 401):
    print({"loss": 2.0 / step}, flush=True)
    print(f"step {step}/400", flush=True)
    time.sleep(0.25)
    if os.path.exists(sys.argv[1]):
        break
    if step == 40 and os.environ["SLURM_PROCID"] == "2":
        sys.exit("a disk that is gone")
"""


def test_four_ranks_are_merged_while_they_run_and_afterwards(tmp_path: Path) -> None:
    if missing := missing_programs():
        pytest.skip(f"Slurm is not installed: {', '.join(missing)}")
    folder, told_of_it = tmp_path / "together", tmp_path / "told"
    with slurm_cluster(tmp_path, 4) as cluster:
        command = [*WATCH, "--collect", str(folder), "--", sys.executable, "-c", TRAINS, str(told_of_it)]
        step = subprocess.Popen(
            ["srun", "--nodes=4", "--ntasks-per-node=1", "--kill-on-bad-exit=0", *command],
            env=dict(cluster.environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        live = _ranks_once(folder, 4, "step")
        said = _said_until(step, "has ended: the others will wait for it", told_of_it)
        assert step.wait(60) == 1
    assert [rank["rank"] for rank in live] == [0, 1, 2, 3]
    assert all(rank["end"] is None for rank in live)
    assert "rank 2 on" in said
    told = _ranks_once(folder, 4, "end")
    assert [rank["end"]["code"] for rank in told] == [0, 0, 1, 0]
    assert told[2]["step"] == 40


def _said_until(step: subprocess.Popen[str], words: str, told_of_it: Path) -> str:
    """Return what is said, the ranks told to come to an end once these words were."""
    said = ""
    assert step.stderr is not None
    with step.stderr:
        for line in step.stderr:
            said += line
            if words in line:
                told_of_it.touch()
    return said


def _ranks_once(folder: Path, count: int, known: str) -> list[dict[str, Any]]:
    """Return what `--replay` tells of the folder once that is known of each of so many ranks."""
    ranks: list[dict[str, Any]] = []
    for _ in range(60):
        done = subprocess.run(
            [*WATCH, "--replay", str(folder), "--format", "json"], capture_output=True, text=True
        )
        ranks = json.loads(done.stdout)["ranks"] if done.stdout else []
        if sum(rank[known] is not None for rank in ranks) == count:
            break
        time.sleep(0.5)
    return ranks
