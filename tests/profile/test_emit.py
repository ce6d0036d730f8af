"""Files carry the setting under the names that the versions at hand have."""

from __future__ import annotations

import json

import pytest
from cards import written

from envdoctor.api import choose_profile
from envdoctor.errors import InputError
from envdoctor.profile.emit.layout import to_yaml

FOUR = ("RTX 4090",) * 4


@pytest.mark.parametrize(
    ("framework", "file", "old", "new", "stack"),
    [
        ("trl", "train.yaml", "max_seq_length: 2048", "max_length: 2048", {"trl": "0.15.2"}),
        ("trl", "train.yaml", "torch_dtype: bfloat16", "\ndtype: bfloat16", {"trl": "0.20.0"}),
        ("ms-swift", "train.sh", "--train_type lora", "tuner_type: lora", {"ms-swift": "3.12.6"}),
        (
            "transformers",
            "training_args.json",
            '"gradient_checkpointing"',
            '"activation_checkpointing"',
            {"transformers": "5.17.0"},
        ),
        ("transformers", "model.json", '"torch_dtype"', '"dtype"', {"transformers": "4.50.0"}),
        (
            "env",
            "env.sh",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "PYTORCH_ALLOC_CONF=expandable_segments:True",
            {"torch": "2.9.1"},
        ),
        ("axolotl", "train.yaml", "sdp_attention: true", "attn_implementation: sdpa", {"axolotl": "0.8.0"}),
        (
            "llamafactory",
            "train.yaml",
            "quantization_method: bitsandbytes",
            "quantization_method: bnb",
            {"llamafactory": "0.9.0"},
        ),
    ],
)
def test_names_follow_the_version(
    framework: str, file: str, old: str, new: str, stack: dict[str, str]
) -> None:
    method = "qlora" if framework == "llamafactory" else "lora"
    before = written(framework, "qwen2.5-1.5b", ("RTX 4090",), method=method, stack=stack).files
    after = written(framework, "qwen2.5-1.5b", ("RTX 4090",), method=method).files
    assert old in before[file]
    assert new not in before[file]
    assert new in "".join(after.values())


def test_fsdp_is_a_flag_since_5_10_and_words_before() -> None:
    asked = {"method": "full", "parallel": "fsdp"}
    new = json.loads(written("transformers", "qwen2.5-1.5b", FOUR, **asked).files["training_args.json"])
    old = json.loads(
        written("transformers", "qwen2.5-1.5b", FOUR, stack={"transformers": "4.57.0"}, **asked).files[
            "training_args.json"
        ]
    )
    assert new["fsdp"] is True
    assert new["fsdp_config"]["version"] == 2
    assert old["fsdp"] == "full_shard auto_wrap"


def test_deepspeed_numbers_agree_with_each_other_and_with_the_trainer() -> None:
    profile = written("transformers", "qwen2.5-1.5b", FOUR, method="full", parallel="zero2", global_batch=32)
    config = json.loads(profile.files["ds_config.json"])
    arguments = json.loads(profile.files["training_args.json"])
    micro, steps = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    assert config["train_batch_size"] == micro * steps * 4 == 32
    assert arguments["per_device_train_batch_size"] == micro
    assert arguments["gradient_accumulation_steps"] == steps
    assert arguments["deepspeed"] == "ds_config.json"


def test_sharded_4_bit_weights_are_stored_in_the_compute_dtype() -> None:
    profile = written("transformers", "qwen2.5-7b", FOUR, method="qlora", parallel="zero3")
    quantization = json.loads(profile.files["model.json"])["from_pretrained"]["quantization_config"]
    assert quantization["bnb_4bit_quant_storage"] == quantization["bnb_4bit_compute_dtype"]


def test_vllm_on_cards_of_its_own_gets_them() -> None:
    profile = written("trl", "qwen2-7b", FOUR, method="lora", task="grpo", seq=1024, parallel="ddp")
    assert profile.found.choice is not None
    if profile.found.choice.vllm_mode == "server":
        assert "CUDA_VISIBLE_DEVICES" in profile.files["env.sh"]


def test_axolotl_finds_the_older_variable_set_which_it_would_set_to_round_requests_up() -> None:
    stack = {"axolotl": "0.21.0", "torch": "2.11.0"}
    files = written("axolotl", "qwen2.5-1.5b", ("RTX 4090",), method="lora", stack=stack).files
    assert files["env.sh"] == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"


@pytest.mark.parametrize(
    ("framework", "task", "word"),
    [
        ("llamafactory", "grpo", "has no grpo"),
        ("vllm", "sft", "has no sft"),
        ("nope", "sft", "not known; there are transformers"),
    ],
)
def test_what_a_framework_cannot_do_is_said(framework: str, task: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        written(framework, "qwen2.5-1.5b", FOUR, task=task)


def test_deepspeed_files_need_a_zero_stage() -> None:
    with pytest.raises(InputError, match="--parallel"):
        written("deepspeed", "qwen2.5-1.5b", FOUR, method="lora")


def test_yaml_scalars_read_back_as_what_they_were() -> None:
    yaml = pytest.importorskip("yaml")
    values = {
        "a": "no",
        "b": 1e-5,
        "c": 0.0001,
        "d": [1, "x: y"],
        "e": {"f": True, "g": None},
        "h": [{"path": "p", "type": "t"}],
        "i": "Qwen/Qwen2.5-7B",
        "j": "1.5",
        "k": "",
    }
    assert yaml.safe_load(to_yaml(values, "comment")) == values


@pytest.mark.parametrize(
    ("model", "version", "kernels"),
    [
        ("qwen2.5-1.5b", "0.16.0", "lora_mlp_kernel: true"),
        ("gemma-2-2b", "0.16.0", "lora_mlp_kernel: false"),  # gated by GELU, which they may not know
        ("qwen2.5-1.5b", "0.6.0", ""),
    ],
)
def test_axolotl_is_told_of_its_kernels_for_adapters(model: str, version: str, kernels: str) -> None:
    stack = {"axolotl": version}
    file = written("axolotl", model, ("RTX 4090",), method="lora", stack=stack).files["train.yaml"]
    assert kernels in file
    assert ("lora_mlp_kernel" in file) is bool(kernels)


def test_axolotl_is_told_how_many_answers_a_step_holds_over_all_cards() -> None:
    stack = {"axolotl": "0.19.0"}
    profile = written("axolotl", "qwen2.5-1.5b", ("RTX 4090",) * 4, method="lora", task="grpo", stack=stack)
    assert profile.found.choice is not None
    assert f"generation_batch_size: {profile.found.choice.global_batch}" in profile.files["train.yaml"]


@pytest.mark.parametrize(
    ("framework", "task", "said"),
    [
        ("trl", "dpo", "# trl dpo --config train.yaml"),
        ("trl", "reward", "lora_task_type: SEQ_CLS"),
        ("llamafactory", "dpo", "stage: dpo"),
        ("llamafactory", "reward", "stage: rm"),
        ("ms-swift", "dpo", "rlhf_type: dpo"),
        ("ms-swift", "reward", "rlhf_type: rm"),
        ("axolotl", "dpo", "rl: dpo"),
    ],
)
def test_pairs_are_trained_on_in_each_frameworks_words(framework: str, task: str, said: str) -> None:
    asked = {"gpus": ["RTX 4090"], "method": "lora", "seq": 512, "framework": framework, "task": task}
    profile = choose_profile("qwen2.5-0.5b", **asked)
    assert said in profile.files["train.yaml"].splitlines()


def test_without_vllm_the_trainer_writes_answers_itself() -> None:
    stack = {"trl": "1.16.0", "torch": "2.11.0"}
    told = {"method": "lora", "task": "grpo", "seq": 512, "stack": stack}
    alone = written("trl", "qwen2.5-0.5b", ("RTX 4090",), complete=True, **told)
    assert "use_vllm: false" in alone.files["train.yaml"].splitlines()
    assert "vllm_mode: colocate" in written("trl", "qwen2.5-0.5b", ("RTX 4090",), **told).files["train.yaml"]
