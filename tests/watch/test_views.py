"""What is shown of runs: a full screen, two recordings side by side, the ranks of a folder together."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyte
import pytest
from curves import GIB, moments
from passing import PYTHON, Terminal, environment, on_terminal

from envdoctor.report.text import draw_text
from envdoctor.watch.collecting import Gathering, read_ranks
from envdoctor.watch.comparing import words_that_differ
from envdoctor.watch.dashboard import curve, frame
from envdoctor.watch.moment import Alarm, Card, End, Expectation, Header, Line, Moment, to_json

WATCH = [PYTHON, "-m", "envdoctor", "watch"]


def recorded(path: Path, *lines: Line) -> Path:
    path.write_text("".join(json.dumps(to_json(line)) + "\n" for line in lines))
    return path


def watch(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WATCH, *words], env=environment(state), cwd=state, capture_output=True, text=True, timeout=100,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


SAYS = """
for step in range(30):
    print({"loss": 2.0}, flush=True); print(f"step {step}/30", flush=True); time.sleep(0.1)
sys.exit(3)
"""


def test_a_full_screen_shows_the_run_and_gives_the_terminal_back(tmp_path: Path) -> None:
    code = f"import sys, time{SAYS}"
    words = [*WATCH, "--dashboard", "--record", str(tmp_path / "r.jsonl"), "--", sys.executable, "-c", code]
    screens: list[str] = []

    def play(terminal: Terminal) -> None:
        terminal.until(b"step 2")
        screens.append(shown(terminal.screen))

    status, said = on_terminal(words, tmp_path, play)
    assert status == 3
    assert any("training, step" in line for line in screens[0].splitlines())
    assert b"\x1b[?1049h" in said
    assert b"\x1b[?1049l" in said
    assert b"ended with exit code 3" in said.partition(b"\x1b[?1049l")[2]
    assert (tmp_path / "r.log").read_text().startswith("{'loss': 2.0}")


def shown(data: bytes) -> str:
    screen = pyte.Screen(100, 30)
    pyte.ByteStream(screen).feed(data)
    return "\n".join(screen.display)


def test_a_full_screen_needs_a_terminal(tmp_path: Path) -> None:
    done = watch(tmp_path, "--dashboard", "--", "touch", "ran")
    assert done.returncode == 2
    assert "--dashboard: neither" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("columns", [80, 120])
def test_a_frame_keeps_to_the_terminals_width(columns: int) -> None:
    run = list(moments(card=lambda t: 30 * GIB + 100 * t, seconds=300))
    run = [replace(m, cards=m.cards * 8) for m in run]
    alarm = Alarm(200.0, "OOM-FORETOLD", "out of memory at about step 512 (±5): memory of GPU 0 grows")
    log = ["x" * 300] * 50
    drawn = frame(
        Header(("python", "train.py") * 40), run, [alarm], Expectation(1.0, 70_000), log, columns, 30
    )
    lines = draw_text(drawn, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert sum(line.startswith("  GPU") for line in lines) == 8
    assert "predicted 68.4 GiB" in "\n".join(lines)


def test_a_curve_shows_the_highest_of_each_part() -> None:
    assert curve([0.0, 1.0, 0.0, 0.5], 2) == "█▄"
    assert curve([], 3) == "   "


STEPS = """
import time
for step in range(400):
    print(f"step {step}/400", flush=True)
    time.sleep(0.1)
"""


def test_a_stop_gives_the_terminal_to_the_shell_and_fg_takes_it_again(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEPS)
    words = " ".join([*WATCH, "--dashboard", "--", sys.executable, str(tmp_path / "train.py")])

    def play(terminal: Terminal) -> None:
        terminal.type(b"PS1='$ '; PROMPT_COMMAND=; bind 'set enable-bracketed-paste off'\n")
        terminal.until(b"$ ")
        terminal.type(words.encode() + b"\n")
        terminal.until(b"step 3")
        terminal.type(b"\x1a")
        terminal.until(b"Stopped")
        assert b"\x1b[?1049l" in terminal.screen
        terminal.type(b"fg\n")
        terminal.until(b"\x1b[?1049h")
        terminal.type(b"\x03")
        terminal.until(b"\x1b[?1049l")
        terminal.type(b"echo code=$?\n")
        terminal.until(b"code=130")
        terminal.type(b"exit\n")

    on_terminal(["bash", "--norc", "-i"], tmp_path, play)


def run_of(step_s: float, card: int, batch: str) -> list[Line]:
    said = [
        Moment(t * step_s, t, 100, 3.0 - t / 50, "training", host=4000, room=60_000,
               cards=(Card(card, card, 143_771, card, 90, 500),))
        for t in range(1, 100)
    ]  # fmt: skip
    return [Header(("python", "train.py", "--batch", batch, "--bf16")), *said, End(100 * step_s, 0, None)]


def test_two_recordings_side_by_side(tmp_path: Path) -> None:
    recorded(tmp_path / "a.jsonl", *run_of(1.0, 60_000, "4"))
    recorded(tmp_path / "b.jsonl", *run_of(0.5, 90_000, "8"))
    done = watch(tmp_path, "compare", "a.jsonl", "b.jsonl")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines() if line.startswith("seconds")] == [
        ["seconds", "a", "step", "1", "0.5", "-50%"]
    ]
    assert "---batch 4\n" in done.stdout
    told = json.loads(watch(tmp_path, "compare", "a.jsonl", "b.jsonl", "--format", "json").stdout)
    measures = {
        measure["name"]: (measure["unit"], measure["a"], measure["b"]) for measure in told["measures"]
    }
    assert measures["GPU 0 at most"] == ("MiB", 60_000, 90_000)
    assert measures["last loss"][1] == measures["last loss"][2]
    assert (told["schema"], told["exit_code"]) == ("envdoctor.watch-compare/1", 0)


def test_what_differs_in_two_commands() -> None:
    first, second = ("train.py", "--bf16", "--batch", "4"), ("train.py", "--batch", "8", "--bf16")
    assert words_that_differ(first, second) == ["---batch 4", "+--batch 8"]


def test_compare_wants_two_recordings(tmp_path: Path) -> None:
    assert watch(tmp_path, "compare", "a.jsonl").returncode == 2


def rank(folder: Path, number: int, step: int, *end: Line) -> Path:
    header = Header(("python", "train.py"), rank=number, host=f"node{number // 8}")
    said = [Moment(float(t), t, 900, 1.0, "training", host=900) for t in range(1, step + 1)]
    return recorded(folder / f"rank-{number:05d}-node{number // 8}.jsonl", header, *said, *end)


def test_the_ranks_of_a_folder_are_drawn_together(tmp_path: Path) -> None:
    for number in range(10):
        rank(tmp_path, number, 40, End(50.0, 1, None) if number != 9 else End(44.0, None, 9, oom_kills=1))
        time.sleep(0.01)
    done = watch(tmp_path, "--replay", str(tmp_path))
    assert done.returncode == 1
    assert "10 ranks, 10 failed" in done.stdout
    assert "First to end: rank 0 on node0" in done.stdout
    told = json.loads(watch(tmp_path, "--replay", str(tmp_path), "--format", "json").stdout)
    assert [r["rank"] for r in told["ranks"]] == list(range(10))
    assert (told["schema"], told["exit_code"]) == ("envdoctor.watch-ranks/1", 1)


def test_a_rank_that_falls_behind_is_named_once(tmp_path: Path) -> None:
    gathering = Gathering(tmp_path)
    for number in range(8):
        rank(tmp_path, number, 12 if number == 5 else 90)
    assert list(gathering.look(100.0)) == []
    (alarm,) = gathering.look(170.0)
    assert (alarm.kind, alarm.text) == ("STRAGGLER", "rank 5 on node0 is at step 12, the others at 90")
    assert list(gathering.look(200.0)) == []


def test_a_rank_that_ended_is_told_to_those_that_wait(tmp_path: Path) -> None:
    for number in range(4):
        rank(tmp_path, number, 30, *([End(31.0, None, 9)] if number == 2 else []))
    (alarm,) = Gathering(tmp_path).look(40.0)
    assert alarm.text == "rank 2 on node0 has ended: the others will wait for it"


def test_a_recording_that_is_cut_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = rank(tmp_path, 3, 30)
    path.write_bytes(path.read_bytes()[:-9])
    (tmp_path / "other.jsonl").write_text("no recording\n")
    (found,) = read_ranks(tmp_path)
    assert (found.rank, found.last.step, found.end) == (3, 29, None)


def test_each_rank_records_into_the_shared_folder(tmp_path: Path) -> None:
    run = subprocess.run(
        [*WATCH, "--collect", str(tmp_path / "all"), "--", "echo", "hello"], capture_output=True, text=True,
        env={**environment(tmp_path), "RANK": "7"}, timeout=100,
    )  # fmt: skip
    assert run.stdout == "hello\n"
    (path,) = (tmp_path / "all").iterdir()
    assert path.name.startswith("rank-00007-")
