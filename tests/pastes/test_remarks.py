"""What a settings file or a script remarks is no fact and no trouble; what is put beneath it is."""

from __future__ import annotations

import pytest

from envdoctor.facts import Facts
from envdoctor.matrix import load_matrix
from envdoctor.pastes import parse_paste


def read(text: str, name: str) -> Facts:
    return parse_paste(text, "", load_matrix().lexicon, name)


YAML = """\
# Env: 8 * A100 80GB, torch 1.2.0, OOMs at 8192
base_model: a/b-7b  # CUDA out of memory on a 4090
output_dir: out-fsdp-qlora
freeze_vision_tower: true
sequence_len: 4096
"""
SHELL = """\
#!/bin/bash
# 2*24GB, hangs with NCCL 2.18
swift sft --model a/b-7b --freeze_vit true --max_length 2048
echo "Error: it failed with exit code $?"
"""


@pytest.mark.parametrize(("text", "name"), [(YAML, "train.yaml"), (SHELL, "train.sh")])
def test_remarks_tell_nothing(text: str, name: str) -> None:
    facts = read(text, name)
    assert not facts.errors
    assert not facts.symptoms
    assert facts.gpus.get() is None
    assert not facts.environment.distributions
    assert facts.setting("model") is not None
    assert facts.setting("seq") is not None


def test_an_error_beneath_the_settings_is_seen() -> None:
    facts = read(
        YAML + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n", "a.yaml"
    )
    assert facts.errors
    assert facts.symptoms


def test_what_is_quoted_is_no_remark() -> None:
    facts = read("base_model: 'a/b-7b # 2'\nsequence_len: 64 # 128\n", "a.yaml")
    assert [facts.setting(key).value for key in ("model", "seq")] == ["a/b-7b # 2", "64"]  # type: ignore[union-attr]


def test_the_same_words_in_a_report_are_read() -> None:
    assert read(YAML, "").gpus.get()


def test_a_launchers_rank_is_no_adapters() -> None:
    assert read("RANK=0\nNNODES=1\n", "run.sh").setting("lora_rank") is None
    assert read("rank: 8\nlora_alpha: 16\n", "a.yaml").setting("lora_rank") is not None


def test_a_member_of_a_settings_file_is_no_error() -> None:
    text = '{\n"zero_force_ds_cpu_optimizer": true,\n"train_batch_size": 8\n}\n'
    assert not read(text, "ds_config.json").symptoms
