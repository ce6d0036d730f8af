"""What stands beside a run: a page, a process that runs already, an end in time, a bundle, the prediction."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest
from passing import PYTHON, environment

from envdoctor.watch.expecting import predicted
from envdoctor.watch.listening import metrics_of, parse_address
from envdoctor.watch.moment import Alarm, Card, End, Expectation, Header, LogLine, Moment, to_json
from envdoctor.watch.watching import is_at_hand


def watch(state: Path, *argv: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, "-m", "envdoctor", "watch", *argv], env=environment(state), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def test_a_page_and_metrics_are_served_on_the_loopback(tmp_path: Path) -> None:
    code = "import time\nfor s in range(60): print('step', s, flush=True); time.sleep(0.1)"
    child = watch(tmp_path, "--listen", "0", "--", sys.executable, "-c", code)
    assert child.stderr is not None
    address = next(word for word in child.stderr.readline().split() if word.startswith("http"))
    assert address.startswith("http://127.0.0.1:")
    deadline = time.monotonic() + 30
    metrics = ""
    while "envdoctor_watch_step" not in metrics and time.monotonic() < deadline:
        metrics = urllib.request.urlopen(f"{address}metrics", timeout=10).read().decode()
        time.sleep(0.2)
    page = urllib.request.urlopen(address, timeout=10).read().decode()
    child.communicate(timeout=60)
    assert "# TYPE envdoctor_watch_step gauge" in metrics
    assert "Curves" in page
    assert child.returncode == 0


def test_metrics_name_cards_and_alarms() -> None:
    moment = Moment(1.0, 5, cards=(Card(1024, 1024, 81_559, util=90),))
    text = metrics_of(moment, [Alarm(1.0, "HANG", "x")])
    assert 'envdoctor_watch_gpu_memory_used_bytes{gpu="0"} 1073741824' in text
    assert 'envdoctor_watch_alarms{alarm="HANG"} 1' in text


@pytest.mark.parametrize(
    ("text", "address"), [("8080", ("127.0.0.1", 8080)), ("0.0.0.0:80", ("0.0.0.0", 80))]
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


def test_an_address_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    child = watch(tmp_path, "--listen", "port", "--", "touch", str(tmp_path / "ran"))
    _, err = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "--listen port" in err
    assert not (tmp_path / "ran").exists()


def test_a_process_that_runs_already_is_watched_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    other = subprocess.Popen([sys.executable, "-c", "import time; x = bytearray(50 << 20); time.sleep(3)"])
    child = watch(tmp_path, "--record", str(path), "--pid", str(other.pid))
    other.wait()
    child.communicate(timeout=60)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert child.returncode == 0
    assert max(line.get("host", 0) for line in lines[1:]) >= 50
    assert "end" in lines[-1]


def test_a_process_that_is_not_there_is_refused(tmp_path: Path) -> None:
    child = watch(tmp_path, "--pid", "4194305")
    _, err = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "--pid 4194305: no such process" in err


def test_an_end_is_at_hand_when_most_of_the_way_is_gone() -> None:
    alarm = Alarm(100.0, "HOST-LEAK", "x", 200.0)
    assert not is_at_hand([alarm], Moment(200.0))
    assert is_at_hand([alarm], Moment(275.0))
    assert not is_at_hand([Alarm(100.0, "HANG", "x")], Moment(900.0))


def test_who_sent_the_signal_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    child = watch(tmp_path, "--record", str(path), "--", "sh", "-c", "echo ready; exec sleep 30")
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGTERM
    assert "The signal came from process" in err or "the signal came from process" in err


def test_a_bundle_of_a_recording_holds_its_end_and_its_log(tmp_path: Path) -> None:
    path, out = tmp_path / "run.jsonl", tmp_path / "b.zip"
    lines = (
        Header(("python", "train.py"), "2026-11-22T05:00:00+0000", host="node7"),
        *(
            Moment(float(t), t, 900, 1.0, "training", host=900 * t, room=60_000 - 900 * t)
            for t in range(1, 60)
        ),
        LogLine(59.0, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        End(60.0, 1, None),
    )
    path.write_text("".join(json.dumps(to_json(line)) + "\n" for line in lines))
    done = subprocess.run(
        [PYTHON, "-m", "envdoctor", "bundle", "--from-watch", str(path), "-o", str(out)],
        env=environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        told = json.loads(archive.read("diagnosis.json"))
        log = next(archive.read(name).decode() for name in names if name.endswith("watch.log"))
    assert "WATCH-DEVICE-OOM" in {f["id"] for f in told["findings"]}
    assert "CUDA out of memory" in log


def test_the_prediction_is_that_of_the_settings_that_the_command_names(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: full\n"
        "per_device_train_batch_size: 4\ncutoff_len: 4096\nbf16: true\n"
    )
    header = Header(("llamafactory-cli", "train", "t.yaml"), cwd=str(tmp_path), cards=("NVIDIA H200",))
    told = predicted(header)
    assert told["what"] == "full of qwen2.5-7b, batch 4, length 4096"
    assert 60_000 < told["longest"] < 140_000


def test_where_nothing_is_told_nothing_is_predicted(tmp_path: Path) -> None:
    assert predicted(Header(("sleep", "1"), cwd=str(tmp_path), cards=("NVIDIA H200",))) == {}


def test_an_expectation_is_a_line_of_its_own() -> None:
    assert to_json(Expectation(2.0, 90_000, "x")) == {"t": 2.0, "expected": {"longest": 90_000, "what": "x"}}
