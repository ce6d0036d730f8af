"""A run that hangs: where its processes stand, which rank differs, and what NCCL tells."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from curves import alarms

from envdoctor.watch.collectives import Last, last_of, progress, read_collectives, told_by_ras
from envdoctor.watch.moment import Alarm, Card, Header, Moment, Stack, Stacks, from_json, to_json
from envdoctor.watch.recording import Recording, read_recording
from envdoctor.watch.replaying import replay
from envdoctor.watch.report import render
from envdoctor.watch.sampling import sampler_of_process
from envdoctor.watch.stacks import difference, frames_of, read_stacks
from envdoctor.watch.watching import Watcher

REDUCE = "all_reduce (site-packages/torch/distributed/distributed_c10d.py:2806)"
WAITS = (REDUCE, "train (train.py:41)", "<module> (train.py:60)")
LOADS = ("collate (data.py:88)", "train (train.py:39)", "<module> (train.py:60)")


def said(*ranks: Stack, stopped: tuple[int, ...] = ()) -> str:
    alarm = difference(Stacks(9.0, ranks), stopped)
    return alarm.text if alarm else ""


def test_the_rank_outside_the_collective_is_named() -> None:
    ranks = [Stack(100 + n, n, LOADS if n == 5 else WAITS) for n in range(8)]
    others = f"the 7 others in {REDUCE}, from train (train.py:41)"
    assert said(*ranks) == f"rank 5 (process 105) stands in collate (data.py:88); {others}"


def test_of_two_ranks_the_one_outside_the_collective_is_named() -> None:
    told = said(Stack(1, 0, LOADS), Stack(2, 1, WAITS))
    assert told.startswith(
        "rank 0 (process 1) stands in collate (data.py:88); rank 1 (process 2) in all_reduce"
    )


def test_without_a_collective_the_majority_tells() -> None:
    waits = ("item (x.py:1)",)
    told = said(Stack(1, 0, waits), Stack(2, 1, ("save (ckpt.py:7)",)), Stack(3, 2, waits))
    assert told == "rank 1 (process 2) stands in save (ckpt.py:7); the 2 others in item (x.py:1)"


def test_a_stopped_rank_is_the_one_that_differs() -> None:
    told = said(Stack(1, 0, WAITS), Stack(2, 1, WAITS), stopped=(2,))
    assert told.startswith("rank 1 (process 2) is stopped in all_reduce")


def test_the_rank_that_the_flight_recorder_tells_behind_is_the_one_that_differs() -> None:
    ranks = (Stack(1, 0, ("sdpa_mask (masks.py:497)",)), Stack(2, 1, LOADS))
    alarm = difference(Stacks(9.0, ranks, behind=(1,)))
    assert alarm is not None
    assert alarm.text.startswith("rank 1 (process 2) stands in collate (data.py:88); rank 0 (process 1) in")


def test_ranks_that_stand_together_are_told_so() -> None:
    assert said(Stack(1, 0, WAITS), Stack(2, 1, WAITS)).startswith("all 2 ranks stand in all_reduce")
    assert said(Stack(1, None, LOADS)) == "it stands in collate (data.py:88)"
    assert said(Stack(1, 0, (), "S (sleeping); no stack: py-spy is not installed")) == ""


def test_stacks_are_recorded_as_they_were() -> None:
    line = Stacks(3.0, (Stack(7, 1, WAITS), Stack(8, None, (), "no stack")), ("NCCL RAS: x",), (1,))
    assert from_json(json.loads(json.dumps(to_json(line)))) == line


def test_the_main_thread_is_taken_of_an_answer_of_py_spy() -> None:
    frame = {"name": "f", "filename": "/opt/venv/lib/python3.12/site-packages/torch/x.py", "line": 3}
    threads = [{"thread_name": "Thread-1", "frames": []}, {"thread_name": "MainThread", "frames": [frame]}]
    assert frames_of(threads) == ("f (site-packages/torch/x.py:3)",)


WAITING = "import sys, time\ndef stand_here():\n    print('ready', flush=True); time.sleep(60)\nstand_here()"


def test_a_process_is_read_from_outside() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, env={**os.environ, "RANK": "3"}
    )
    assert child.stdout is not None
    with child, child.stdout:
        child.stdout.readline()
        (stack,) = read_stacks([child.pid])
        child.kill()
    assert (stack.pid, stack.rank) == (child.pid, 3)
    if stack.frames:
        assert stack.frames[0].startswith("stand_here (")
    else:  # where ptrace is not allowed, the kernel's word
        assert "no stack" in stack.why


RANKS = """
import os, signal, subprocess, sys, time
if len(sys.argv) > 1:
    time.sleep(60)
rank = [sys.executable, __file__, "rank"]
children = [subprocess.Popen(rank, env={**os.environ, "RANK": str(n)}) for n in (0, 1)]
os.kill(children[1].pid, signal.SIGSTOP)
print(children[1].pid, flush=True)
time.sleep(60)
"""


def test_a_hang_is_looked_into_and_recorded(tmp_path: Path) -> None:
    path, program = tmp_path / "r.jsonl", tmp_path / "ranks.py"
    program.write_text(RANKS)
    said: list[Alarm] = []
    child = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout is not None
    with child, child.stdout:
        stopped = int(child.stdout.readline())
        argv, sampler = sampler_of_process(child.pid)
        sampler.sample(0.0, True)
        recording = Recording(path)
        Watcher(argv, sampler, recording, said.append).inspect(Moment(1.0, stopped=(stopped,)))
        recording.close()
        os.killpg(child.pid, signal.SIGKILL)
    assert said[-1].text.startswith(f"rank 1 (process {stopped}) is stopped")
    assert any(isinstance(line, Stacks) for line in read_recording(path))
    assert "Where its processes stood" in render(replay(path))


def test_the_flight_recorder_tells_who_is_behind() -> None:
    lasts = [Last(0, 812, "all_reduce", "started"), Last(1, 811, "all_gather", "completed")]
    assert progress(lasts) == (
        "flight recorder: rank 1 ended with collective 811 (all_gather); "
        "the others wait in 812 (all_reduce, started)",
    )
    mixed = [Last(0, 5, "all_reduce", "started"), Last(1, 5, "broadcast", "started")]
    assert progress(mixed)[0].startswith("the ranks call different collectives: rank 0 in all_reduce")


def entry(number: int, **more: object) -> dict[str, object]:
    told = {"collective_seq_id": number, "profiling_name": "nccl:all_reduce", "state": "started"}
    return {**told, "is_p2p": False, **more}


def test_a_dump_is_read_as_plain_values_only() -> None:
    dump = pickle.dumps({"version": "2.9", "entries": [entry(3), entry(9), entry(40, is_p2p=True)]})
    assert last_of(1, dump) == Last(1, 9, "all_reduce", "started")
    with pytest.raises(pickle.UnpicklingError, match="plain values"):
        last_of(1, pickle.dumps({"entries": [Header()]}))


RAS = "Job summary\nGroup Status Errors\nErrors\n======\n  Rank 1 is behind: AllReduce 12, others 13\n"


def test_ras_is_asked_on_the_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            line, _ = server.accept()
            with line:
                assert line.recv(100) == b"verbose status\n"
                line.sendall(RAS.encode())

        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        child = subprocess.Popen(["cat"], stdin=-1, stdout=-1, env={**os.environ, "NCCL_RAS_ADDR": address})
        with child:
            child.stdin.write(b"x\n"), child.stdin.flush(), child.stdout.readline()
            told, _ = read_collectives([child.pid])
            child.kill()
    assert told == told_by_ras(RAS)
    assert told == ("NCCL RAS: Rank 1 is behind: AllReduce 12, others 13",)


def test_a_hang_before_the_first_step_is_told() -> None:
    card = Card(2000, 2000, 80_000, 2000, 0, 70, 300)
    rests = Moment(0.0, phase="loading", cores=0.0, cards=(card,))
    (alarm,) = alarms(replace(rests, t=float(t), silent=float(t)) for t in range(0, 900, 5))
    assert alarm.kind == "HANG"
    assert "before the first step" in alarm.text
