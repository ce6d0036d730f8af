"""What a watch leaves behind, as a user finds it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from passing import PYTHON, environment

from envdoctor.errors import InputError
from envdoctor.watch.loglines import LogReader
from envdoctor.watch.moment import Alarm, Card, End, Header, LogLine, Moment, from_json, to_json
from envdoctor.watch.recording import DAY_S, Recording, read_recording

GROWS = """
import sys, time
held = []
for step in range(20):
    held.append(bytearray(8 << 20))
    time.sleep(0.12)
    print(f"step {step}/20", flush=True)
    print({"loss": 2.0 - step / 20, "grad_norm": 0.1}, flush=True)
sys.exit(3)
"""


def watched(recording: Path, *argv: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [PYTHON, "-m", "envdoctor", "watch", "--record", str(recording), "--", *argv],
        env=environment(recording.parent), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def test_a_recording_tells_steps_memory_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    child = watched(path, sys.executable, "-c", GROWS)
    child.communicate(timeout=60)
    assert child.returncode == 3
    header, *lines = read_recording(path)
    assert isinstance(header, Header)
    assert header.argv[1] == "-c"
    moments = [line for line in lines if isinstance(line, Moment)]
    assert moments[-1].step == 19
    assert moments[-1].of == 20
    assert moments[-1].loss == pytest.approx(1.05)
    assert moments[-1].phase == "training"
    assert max(m.host or 0 for m in moments) > 140
    assert isinstance(lines[-1], End)
    assert lines[-1].code == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_killed_watch_leaves_a_readable_recording_and_the_command(tmp_path: Path) -> None:
    path, proof = tmp_path / "run.jsonl", tmp_path / "proof"
    code = (
        f"import time\nfor i in range(30): time.sleep(0.1); print(i)\nopen({str(proof)!r}, 'w').write('done')"
    )
    child = watched(path, sys.executable, "-uc", code)
    while not path.exists() or len(path.read_bytes().splitlines()) < 3:
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    out, _ = child.communicate(timeout=60)
    assert out.split()[-1] == b"29"
    assert proof.read_text() == "done"
    assert len(list(read_recording(path))) >= 3


def test_what_a_command_that_fails_at_once_wrote_to_a_file_is_read(tmp_path: Path) -> None:
    said, path = tmp_path / "said", tmp_path / "run.jsonl"
    said.write_text("RuntimeError: of another run\n")
    with said.open("ab") as log:
        command = [
            PYTHON,
            "-m",
            "envdoctor",
            "watch",
            "--record",
            str(path),
            "--",
            "sh",
            "-c",
            "echo RuntimeError: no; exit 1",
        ]
        subprocess.run(command, stdout=log, stderr=log, env=environment(tmp_path), check=False, timeout=100)
    told = [line.text for line in read_recording(path) if isinstance(line, LogLine)]
    assert told == ["RuntimeError: no"]


def test_where_no_recording_can_be_written_the_command_runs_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    child = watched(tmp_path / "file" / "run.jsonl", "echo", "hello")
    out, _ = child.communicate(timeout=60)
    assert out == b"hello\n"
    assert child.returncode == 0


LINES = (
    Header(("python", "train.py"), "2026-11-22T05:00:00+0000", cards=("NVIDIA H200",), expected={"step": 70}),
    Moment(1.5, 3, 10, 0.5, "training", (2, 5), 100, 2000, 1.5, 4, 50, 60, 0.2, None, None, True, (7,),
           (Card(10, 12, 80, 8, 90, 300, 1500, 4, 60), Card(1, 1, 80))),
    Moment(2.0),
    Alarm(3.0, "HOST-LEAK", "host memory grows", 40.0, 340, 25, 0),
    LogLine(4.0, "RuntimeError: no"),
    End(5.0, None, 9, "sent by kill", 1, 300),
)  # fmt: skip


def test_lines_are_read_as_they_were_written() -> None:
    assert tuple(from_json(json.loads(json.dumps(to_json(line)))) for line in LINES) == LINES


def test_a_day_on_eight_cards_fits_into_twenty_mebibytes(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "day.jsonl")
    cards = tuple(Card(70_000 + i, 70_000 + i, 81_559, 69_000, 99, 650, 1_980, 4, 60) for i in range(8))
    written = 0
    for second in range(0, DAY_S, 1):
        if recording.has_room(second):
            written += 1
            recording.write(
                Moment(float(second), second, 100_000, 1.2345, "training", host=90_000, cards=cards)
            )
    recording.close()
    assert (tmp_path / "day.jsonl").stat().st_size < 20 << 20
    assert written > DAY_S / 3


@pytest.mark.parametrize("text", ["", "[]\n", '{"t": 1}\n', "no json\n", '{"schema": "envdoctor.watch/9"}\n'])
def test_what_is_no_recording_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    if not text:
        assert list(read_recording(path)) == []
        return
    with pytest.raises(InputError, match=r"bad\.jsonl, line 1"):
        list(read_recording(path))


@pytest.mark.parametrize(
    ("said", "step", "of", "loss"),
    [
        ("  3%|▎         | 30/1000 [00:12<06:40,  2.42it/s]", 30, 1000, None),
        ("{'loss': 1.234, 'grad_norm': 0.5, 'learning_rate': 5e-05, 'epoch': 0.1}\n", None, None, 1.234),
        ("{'loss': '1.234', 'grad_norm': '0.5', 'learning_rate': '5e-05'}\n", None, None, 1.234),
        ("{'loss': 2.5, 'global_step/max_steps': '5/100', 'percentage': '5.00%'}\n", 5, 100, 2.5),
        ("Train:  10%|█         | 10/100 [00:20<03:00,  2.00s/it]", 10, 100, None),
        (" iteration       10/  500000 | consumed samples: 80 | lm loss: 1.05E+01 |\n", 10, 500000, 10.5),
        ("iter 10: loss 2.3000, time 12.00ms\n", 10, None, 2.3),
        ("[rank3]: step: 7 loss: 0.25\n", 7, None, 0.25),
        ("Epoch 1, Step 12/90, loss = 3.5\n", 12, 90, 3.5),
        ("Loading checkpoint shards:  50%|█████     | 2/4 [00:05<00:05]", None, None, None),
        ("\x1b[32mstep\x1b[0m 4\n", 4, None, None),
        ("step 4\nenvdoctor: out of memory at about step 340 (±25): it grows\n", 4, None, None),
    ],
)
def test_steps_and_losses_of_trainers(
    said: str, step: int | None, of: int | None, loss: float | None
) -> None:
    reader = LogReader()
    for at in range(0, len(data := said.encode()), 7):
        reader.feed(data[at : at + 7])
    reader.close()
    assert (reader.step, reader.of, reader.loss) == (step, of, loss)


def test_an_evaluation_inside_training_is_told_apart() -> None:
    reader = LogReader()
    reader.feed(b"  5%|x | 50/1000 [00:12<06:40]\r")
    reader.feed(b" 40%|x | 10/25 [00:02<00:03]\r")
    assert (reader.phase, reader.step, reader.part) == ("evaluation", 50, (10, 25))
    reader.feed(b"  5%|x | 51/1000 [00:20<06:40]\r")
    assert (reader.phase, reader.step, reader.part) == ("training", 51, None)


@pytest.mark.parametrize("line", ["{'loss': nan, 'grad_norm': nan}", "{'loss': '0.0', 'grad_norm': 'nan'}"])
def test_a_loss_that_is_no_number_is_kept(line: str) -> None:
    reader = LogReader()
    reader.feed(line.encode() + b"\n")
    assert reader.not_finite == line
