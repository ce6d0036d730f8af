"""What a shell runs stands behind `$`; an option, a setting or code behind `|`: it goes elsewhere."""

from __future__ import annotations

import pytest

from envdoctor.commands import is_typed
from envdoctor.report import Format, draw
from envdoctor.report.document import Document, Row, Rows
from envdoctor.report.markup import commands_block


@pytest.mark.parametrize(
    "line",
    [
        "pip install 'torch>=2.8'",
        "export NCCL_P2P_DISABLE=1",
        "CUDA_VISIBLE_DEVICES=0 python train.py",
        "/usr/lib/wsl/lib/nvidia-smi",
        'python -c "import torch; print(torch.version.cuda)"',
        "wsl.exe --update",
        "set CUDA_VISIBLE_DEVICES=0",
    ],
)
def test_a_shell_runs_it(line: str) -> None:
    assert is_typed(line)


@pytest.mark.parametrize(
    "line",
    [
        "--optim adamw_bnb_8bit",
        "bf16: true",
        "deploy: {resources: {}}",
        '"offload_optimizer": {"device": "cpu"}',
        'attn_implementation="sdpa"',
        "strategy = FSDPStrategy(cpu_offload=True, …)",
        "load_dataset(NAME, streaming=True)",
        "dynamic={r'-:.*NAME.*': {}}   # gptqmodel",
        "from trl import SFTConfig",
        "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04",
        "#SBATCH --time=24:00:00",
        "%pip install torch",
        "/set parameter num_ctx 2048",
    ],
)
def test_it_is_written_where_it_belongs(line: str) -> None:
    assert not is_typed(line)


def test_a_remedy_shows_which_of_its_lines_are_typed() -> None:
    row = Row("do", "Shard them.", commands=("pip install deepspeed", "--deepspeed zero3.json"))
    shown = draw(Document("run", "", (Rows((row,)),)), Format.TEXT)
    assert "\n      $ pip install deepspeed\n      | --deepspeed zero3.json\n" in shown
    assert commands_block(row.commands).startswith("```\n")
    assert commands_block(row.commands[:1]).startswith("```sh\n")
    assert commands_block(()) == ""
