"""Training and serving settings come out under their common keys, whatever the framework calls them."""

from __future__ import annotations

import pytest


def told(facts):
    return {setting.key: setting.value for setting in facts.settings}


def test_llamafactory_yaml(read, sample):
    facts = read(sample("llamafactory.md"))
    assert told(facts) == {
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "quant": "nf4",
        "quant_bits": "4",
        "task": "sft",
        "method": "lora",
        "lora_rank": "8",
        "lora_targets": "all",
        "zero_stage": "3",
        "offload_optimizer": "true",
        "offload_params": "true",
        "seq": "4096",
        "batch": "1",
        "grad_accum": "8",
        "bf16": "true",
        "attn": "flash_attention_2",
        "grad_ckpt": "false",
    }
    assert facts.setting("seq").source == "line 16"
    assert facts.setting("seq").native_key == "cutoff_len"


def test_deepspeed_json(read, sample):
    settings = told(read(sample("ds_config.json")))
    assert settings == {
        "fp16": "true",
        "zero_stage": "3",
        "offload_optimizer": "true",
        "offload_params": "false",
        "batch": "4",
    }


def test_deepspeed_json_on_one_line_or_without_indentation(read, sample):
    flat = "\n".join(line.strip() for line in sample("ds_config.json").splitlines())
    for text in (flat, flat.replace("\n", " ")):
        assert told(read(text))["zero_stage"] == "3"
        assert told(read(text))["offload_optimizer"] == "true"


def test_accelerate_yaml(read, sample):
    settings = told(read(sample("accelerate.yaml")))
    assert (settings["zero_stage"], settings["gpus"], settings["dtype"]) == ("2", "8", "bf16")
    assert (settings["offload_optimizer"], settings["offload_params"]) == ("true", "false")


def test_axolotl_yaml(read, sample):
    settings = told(read(sample("axolotl.yaml")))
    assert (settings["method"], settings["quant"], settings["seq"], settings["batch"]) == (
        "qlora",
        "nf4",
        "4096",
        "2",
    )
    assert (settings["zero_stage"], settings["optim"]) == ("2", "paged_adamw_32bit")


def test_weclone_jsonc(read, sample):
    settings = told(read(sample("settings.jsonc")))
    assert (settings["vllm_utilization"], settings["seq"], settings["lora_rank"]) == ("0.95", "1024", "4")
    assert settings["model"] == "./models/Qwen2.5-7B-Instruct"


def test_swift_command(read, sample):
    facts = read(sample("swift_grpo.sh"))
    settings = told(facts)
    assert (settings["task"], settings["method"], settings["zero_stage"]) == ("grpo", "lora", "2")
    assert (settings["vllm_utilization"], settings["gpus"], settings["dtype"]) == ("0.8", "4", "bf16")
    assert facts.setting("task").framework == "ms-swift"
    assert facts.variables["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


def test_vllm_serve(read):
    settings = told(
        read("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.95 --enforce-eager --dtype half")
    )
    assert settings == {
        "task": "serve",
        "model": "Qwen/Qwen3-8B",
        "vllm_utilization": "0.95",
        "enforce_eager": "true",
        "dtype": "fp16",
    }


def test_vllm_start_up_line(read):
    facts = read(
        "INFO llm_engine.py:98] Initializing an LLM engine (v0.4.1) with config: "
        "model='x', dtype=torch.float16, "
        "max_seq_len=16384, tensor_parallel_size=2, enforce_eager=False"
    )
    assert facts.distribution("vllm").version == "0.4.1"
    assert told(facts) == {"dtype": "fp16", "max_model_len": "16384", "tp": "2", "enforce_eager": "false"}


def test_python_calls(read):
    settings = told(
        read(
            "model = AutoModel.from_pretrained(path, torch_dtype=torch.bfloat16, "
            'load_in_4bit=True, device_map="auto")\n'
            "args = TrainingArguments(per_device_train_batch_size=4, bf16=True, "
            "gradient_checkpointing=True)\n"
        )
    )
    assert settings == {
        "dtype": "bf16",
        "quant": "nf4",
        "bnb_4bit": "true",
        "device_map": "auto",
        "bf16": "true",
        "batch": "4",
        "grad_ckpt": "true",
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deepspeed.zero_stage: 2 + CPU offload", {"zero_stage": "2", "offload_optimizer": "true"}),
        ("offload: optimizer and parameters to CPU", {"offload_optimizer": "true", "offload_params": "true"}),
        ("method: QLoRA", {"method": "qlora", "quant": "nf4"}),
        ("lora: enabled", {"method": "lora"}),
        ("precision: bf16", {"dtype": "bf16"}),
        ("tensor_parallel: 2", {"tp": "2"}),
        ("batch_size：2", {"batch": "2"}),
        ("使用 ZeRO-3 训练", {"zero_stage": "3"}),
        ("bf16: auto", {}),
        ("load_in_4bit: false", {}),
        ("bf16: $BF16", {}),
    ],
)
def test_loose_settings(read, line, expected):
    assert told(read(line)) == expected


def test_running_text_does_not_overrule_a_setting(read):
    assert told(read("I read that zero 3 helps\n\nzero_stage: 2\n"))["zero_stage"] == "2"


def test_running_text_hints_at_a_run(read):
    facts = read(
        "I have 4 × NVIDIA A100 80GB PCIe, fine-tuning Llama-2-13b with LoRA rank 16, ZeRO-3, batch size 1, "
        "max length 4096. Got OOM. nvidia-smi shows CUDA 12.2 and Driver Version 535.129.03."
    )
    assert told(facts) == {
        "model": "Llama-2-13b",
        "method": "lora",
        "zero_stage": "3",
        "batch": "1",
        "lora_rank": "16",
        "seq": "4096",
    }
    assert [gpu.name for gpu in facts.gpus.value] == ["NVIDIA A100 80GB PCIe"] * 4
    assert str(facts.driver.cuda.value) == "12.2"


def test_advice_in_an_error_is_no_setting(read):
    facts = read("You can use float16 instead by setting the`dtype` flag in CLI, for example: --dtype=half.")
    assert told(facts) == {}


def test_flags_as_a_list_of_words(read):
    settings = told(read('cmd = [\n  "--finetuning_type", "lora",\n  "--cutoff_len", "2048",\n]\n'))
    assert settings == {"method": "lora", "seq": "2048"}


@pytest.mark.parametrize(
    "variable", ["$LR", "<your rate>", "{lr}", "args.lr", "config.lr", "self.lr", "auto"]
)
def test_a_variable_is_no_value(read, variable):
    assert read(f"learning_rate: {variable}").settings == ()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("zero_stage: 2 offload", {"zero_stage": "2", "offload_optimizer": "true"}),
        ("zero_stage: 3 offload_params", {"zero_stage": "3", "offload_params": "true"}),
        (
            "deepspeed: zero3 offload",
            {"zero_stage": "3", "offload_optimizer": "true", "offload_params": "true"},
        ),
        ("offload: params", {"offload_optimizer": "true", "offload_params": "true"}),
        ("method: qlora", {"method": "qlora", "quant": "nf4"}),
    ],
)
def test_what_a_value_says_besides(read, line, told):
    assert {setting.key: setting.value for setting in read(line).settings} == told


def test_the_name_of_a_constant_is_no_value(read):
    told = read(
        "max_lora_rank = LORA_RANK,\nmax_seq_length = MAX_SEQ_LENGTH,\nload_in_4bit = LOAD_IN_4BIT,\n"
    )
    assert told.settings == ()


def test_a_length_of_a_few_tokens_in_a_section_is_not_the_runs(read):
    run = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\ncutoff_len: {}\n{}"
    sections = "data:\n  max_length: 8\neval:\n  max_seq_length: 16\n"
    assert told(read(run.format(2048, sections)))["seq"] == "2048"
    assert told(read(run.format(16, "")))["seq"] == "16"


STARTED = """docker run --gpus all {} \\
  -p 8000:8000 \\
  vllm/vllm-openai:v0.7.1 --model x/y
"""


def test_a_container_tells_its_image_and_the_memory_that_it_gets_unasked(read):
    facts = read(STARTED.format(""))
    assert facts.host.container.value == "vllm/vllm-openai:v0.7.1"
    assert facts.environment.distributions["vllm"].version == "0.7.1"
    assert told(facts)["container_shm"] == "default"


@pytest.mark.parametrize("asked", ["--ipc=host", "--shm-size 16g", "-v /dev/shm:/dev/shm"])
def test_a_container_that_asks_for_shared_memory_has_no_default(read, asked):
    assert "container_shm" not in told(read(STARTED.format(asked)))


def test_a_value_in_quotes_ends_with_them_and_a_parameter_of_code_is_no_setting(read):
    told = read("Parameters: ModelArguments(a=1, bnb_4bit_quant_type='nf4', use_bnb_nested_quant=False)")
    assert {s.value for s in told.settings if s.key == "bnb_quant_type"} <= {"nf4"}
    assert read("def step(\n    self,\n    optimizer: Steppable,\n    batch: int,\n):\n").settings == ()
