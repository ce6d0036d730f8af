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
        (("x.py", "--per_device_train_batch_size", "1", "--gradient_checkpointing", "True"), "nothing"),
    ],
)  # fmt: skip
def test_where_there_is_none_it_is_said_why(tmp_path: Path, argv: tuple[str, ...], why: str) -> None:
    with pytest.raises(NoStep, match=why):
        next_step(header(tmp_path, *argv), None)


def environment_of(folder: Path, program: str, *packages: str) -> str:
    """Make an environment of these packages and return its program."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "venv/lib" / version / "site-packages"
    for package in packages:
        (site / f"{package}.dist-info").mkdir(parents=True)
    (folder / "venv/bin").mkdir()
    (folder / "venv/pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    (folder / "venv/bin/python3").symlink_to(Path(sys.executable).resolve())
    (folder / "venv/bin" / program).write_text("#!/bin/sh\n")
    (folder / "venv/bin" / program).chmod(0o755)
    return str(folder / "venv/bin" / program)


def test_ligers_kernels_are_used_where_they_are_installed_by_the_frameworks_own_key(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(LLAMAFACTORY)
    program = environment_of(tmp_path, "llamafactory-cli", "liger_kernel-0.6.1", "llamafactory-0.9.3")
    step = next_step(header(tmp_path, program, "train", "t.yaml"), None)
    assert "+enable_liger_kernel: true" in changed(step.diff)
    assert "Liger's kernels false → true" in step.summary


FULL = """model_name_or_path: Qwen/Qwen3-4B
stage: sft
finetuning_type: full
per_device_train_batch_size: 1
gradient_checkpointing: true
cutoff_len: 512
bf16: true
optim: adamw_torch
"""


def test_states_of_eight_bits_come_once_nothing_else_fits(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(FULL)
    program = environment_of(tmp_path, "llamafactory-cli", "bitsandbytes-0.48.0")
    run = header(tmp_path, program, "train", "t.yaml", card="NVIDIA A100-SXM4-80GB")
    assert changed(next_step(run, None).diff) == ["-optim: adamw_torch", "+optim: adamw_8bit"]
    (tmp_path / "t.yaml").write_text(LLAMAFACTORY)
    step = next_step(header(tmp_path, program, "train", "t.yaml"), None)
    assert "optim" not in step.diff


def test_the_optimizer_goes_to_the_host_where_deepspeeds_file_says_none(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(FULL + "deepspeed: ds.json\n")
    (tmp_path / "ds.json").write_text(
        '{"zero_optimization": {"stage": 2,\n  "offload_optimizer": {"device": "none"}}}\n'
    )
    run = header(tmp_path, "llamafactory-cli", "train", "t.yaml", card="NVIDIA A100-SXM4-80GB")
    roomy, tight = Moment(9.0, host=900, room=500_000), Moment(9.0, host=900, room=50_000)
    assert '+  "offload_optimizer": {"device": "cpu"}}}' in changed(next_step(run, roomy).diff)
    with pytest.raises(NoStep):
        next_step(run, tight)


NO_KEYS = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
LESS_FREE = (
    "ValueError: Free memory on device cuda:0 (60.1/79.1 GiB) on startup is less than desired GPU memory"
    " utilization (0.9, 71.2 GiB)."
)


@pytest.mark.parametrize(
    ("log", "others", "options", "expected"),
    [
        (NO_KEYS, 0, ("--gpu-memory-utilization", "0.15"), "+--gpu-memory-utilization 0.9"),
        (LESS_FREE, 20_000, (), "+--gpu-memory-utilization 0.7"),
    ],
)
def test_an_engine_gets_a_share_within_the_predicted_bounds(
    tmp_path: Path, log: str, others: int, options: tuple[str, ...], expected: str
) -> None:
    run = header(
        tmp_path, "vllm", "serve", "Qwen/Qwen2.5-7B-Instruct", *options, card="NVIDIA A100-SXM4-80GB"
    )
    moment = Moment(9.0, cards=(Card(others, others, 81_920, 0),))
    step = next_step(run, moment, [log])
    assert any(line.startswith(expected) for line in changed(step.diff)), step.diff
    assert step.bound_bytes is not None


def test_an_engine_that_is_not_known_goes_one_step(tmp_path: Path) -> None:
    run = header(tmp_path, "python", "-m", "vllm.entrypoints.openai.api_server", "--model", "./mine")
    step = next_step(run, None, ["torch.OutOfMemoryError: CUDA out of memory."])
    assert step.argv[-4:] == ("--gpu-memory-utilization", "0.85", "--max-num-seqs", "128")
    assert "not predicted" in step.summary


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
