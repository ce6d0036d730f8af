"""A run that a card's memory ended: what to change of its own command and files, and doing so when asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from passing import PYTHON, environment

from envdoctor.watch.moment import Alarm, Card, Header, Moment
from envdoctor.watch.stepping import NoStep, next_step

LLAMAFACTORY = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
per_device_train_batch_size: 32  # as large as it goes
gradient_accumulation_steps: 2
cutoff_len: 4096
bf16: true
"""
SCRIPT = """torchrun --nproc_per_node 2 train.py \\
  --per_device_train_batch_size 8 --bf16 True \\
  --output_dir out
"""


def header(folder: Path, *argv: str, card: str = "NVIDIA H200") -> Header:
    return Header(argv, cwd=str(folder), cards=(card,))


def changed(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_the_largest_micro_batch_that_is_predicted_to_fit_is_written_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(LLAMAFACTORY)
    step = next_step(header(tmp_path, "llamafactory-cli", "train", "t.yaml"), None)
    assert step.bound_bytes is not None
    assert step.bound_bytes < 140 << 30
    old, accumulation, new, doubled = changed(step.diff)
    assert old == "-per_device_train_batch_size: 32  # as large as it goes"
    batch = int(new.split()[1])
    assert accumulation == "-gradient_accumulation_steps: 2"
    assert batch * int(doubled.split()[1]) == 64
    assert "at most" in step.summary


def test_what_others_hold_of_the_card_is_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(LLAMAFACTORY)
    run = header(tmp_path, "llamafactory-cli", "train", "t.yaml")
    beside = Moment(9.0, cards=(Card(140_000, 140_000, 143_771, 40_000),))
    alone, shared = next_step(run, None), next_step(run, beside)
    assert (shared.bound_bytes or 0) < (alone.bound_bytes or 0)
    assert (shared.bound_bytes or 0) < 45 << 30


def test_a_command_line_is_changed_in_its_own_manner(tmp_path: Path) -> None:
    run = header(tmp_path, "python", "x.py", "--per-device-train-batch-size=6", "--lr", "1e-5")
    step = next_step(run, None)
    assert step.argv == (
        "python", "x.py", "--per-device-train-batch-size=3", "--gradient-accumulation-steps=2",
        "--lr", "1e-5",
    )  # fmt: skip
    assert "not predicted" in step.summary


def test_a_shell_script_that_is_run_is_changed(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text(SCRIPT)
    step = next_step(header(tmp_path, "bash", "train.sh"), None)
    ((_, after),) = step.files.values()
    assert "--gradient_accumulation_steps 2 --per_device_train_batch_size 4 --bf16 True" in after


def test_a_file_that_a_file_names_is_kept_in_step(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(LLAMAFACTORY + "deepspeed: ds.json\n")
    (tmp_path / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 2}}'
    )
    step = next_step(header(tmp_path, "llamafactory-cli", "train", "t.yaml"), None)
    ours, theirs = (after for _, after in step.files.values())
    batch = int(next(line for line in ours.splitlines() if "batch" in line).split()[1])
    assert json.loads(theirs)["train_micro_batch_size_per_gpu"] == batch


def test_the_command_goes_before_its_file(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("per_device_train_batch_size: 8\ngradient_checkpointing: false\n")
    run = header(tmp_path, "trl", "sft", "--config", "t.yaml", "--per_device_train_batch_size", "1")
    step = next_step(run, None)
    assert changed(step.diff) == ["-gradient_checkpointing: false", "+gradient_checkpointing: true"]


JSON = '{\n  "per_device_train_batch_size": 4,\n  "bf16": true\n}\n'


def test_what_is_stated_nowhere_is_written_beside_the_micro_batch(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(JSON)
    step = next_step(header(tmp_path, "python", "x.py", "a.json"), None)
    ((_, after),) = step.files.values()
    told = json.loads(after)
    assert (told["per_device_train_batch_size"], told["gradient_accumulation_steps"]) == (2, 2)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("python", "x.py"), "named neither"),
        (("x.py", "--per_device_train_batch_size", "1", "--gradient_checkpointing", "True"), "no micro"),
    ],
)  # fmt: skip
def test_where_there_is_none_it_is_said_why(tmp_path: Path, argv: tuple[str, ...], why: str) -> None:
    with pytest.raises(NoStep, match=why):
        next_step(header(tmp_path, *argv), None)


TRAINER = """
import re, sys
batch = int(re.search(r"batch_size: (\\d+)", open("t.yaml").read())[1])
print("batch", batch, sys.stdin.read())
if batch > 1:
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has")
"""


def retried(tmp_path: Path, count: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "t.yaml").write_text("# mine\nper_device_train_batch_size: 4\n")
    (tmp_path / "train.py").write_text(TRAINER)
    command = ["--retry", count, "--record", "r.jsonl", "--", sys.executable, "train.py", "t.yaml"]
    return subprocess.run(
        [PYTHON, "-m", "envdoctor", "watch", *command], cwd=tmp_path, env=environment(tmp_path),
        capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_retry_steps_down_until_it_runs_and_shows_each_change_first(tmp_path: Path) -> None:
    done = retried(tmp_path, "3")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["4", "2", "1"]
    text = (tmp_path / "t.yaml").read_text()
    assert text == "# mine\ngradient_accumulation_steps: 4\nper_device_train_batch_size: 1\n"
    assert done.stderr.index("+per_device_train_batch_size: 2") < done.stderr.index("run again")
    assert sorted(path.name for path in tmp_path.glob("r*.jsonl")) == ["r-2.jsonl", "r-3.jsonl", "r.jsonl"]


def test_without_retry_the_files_stay_and_the_change_is_shown(tmp_path: Path) -> None:
    done = retried(tmp_path, "0")
    assert done.returncode == 1
    assert "+per_device_train_batch_size: 2" in done.stderr
    assert (tmp_path / "t.yaml").read_text() == "# mine\nper_device_train_batch_size: 4\n"


def test_a_growth_is_not_met_by_a_smaller_setting(tmp_path: Path) -> None:
    from envdoctor.watch.death import Story, next_setting

    leak = Alarm(
        5.0, "OOM-FORETOLD", "out of memory at about step 40 (±2): memory of GPU 0 grows", 30.0, 40, 2
    )
    run = header(tmp_path, "python", "x.py", "--per_device_train_batch_size", "4")
    story = Story(run, (), (leak,), ("torch.OutOfMemoryError: CUDA out of memory.",), None)
    assert str(next_setting(story)).startswith("no smaller setting helps for long")
