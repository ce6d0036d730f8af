"""TRL's YAML for `trl sft`, `dpo`, `reward` and `grpo`: script, trainer and model arguments in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.profile.emit import deepspeed
from envdoctor.profile.emit.layout import to_yaml
from envdoctor.profile.emit.transformers import long_dtype, training_arguments

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan


_DATA = {"sft": "trl-lib/Capybara", "grpo": "trl-lib/DeepMath-103K"}
_PAIRS = "trl-lib/ultrafeedback_binarized"


def emit(plan: Plan) -> dict[str, str]:
    """Return `train.yaml`; a data set stands in it as an example to replace."""
    values: dict[str, Any] = {
        "model_name_or_path": plan.model,
        "dataset_name": _DATA.get(plan.choice.task, _PAIRS),
        **model_arguments(plan),
        **arguments(plan),
    }
    command = f"trl {plan.choice.task} --config train.yaml"
    return {"train.yaml": to_yaml(values, command), **deepspeed.beside(plan)}


def arguments(plan: Plan) -> dict[str, Any]:
    """Return the task's own config."""
    task = plan.choice.task
    found = training_arguments(plan, "trl")
    if task == "grpo":
        return found | generation(plan)
    if task == "sft":
        return found | supervised(plan)
    return found | {"max_length": plan.choice.seq}


def supervised(plan: Plan) -> dict[str, Any]:
    """Return SFTConfig's length, whose name was `max_seq_length` up to 0.19."""
    return {plan.names.pick("trl", "max_length", "max_seq_length"): plan.choice.seq, "packing": False}


def model_arguments(plan: Plan) -> dict[str, Any]:
    """Return ModelConfig's part."""
    choice = plan.choice
    found: dict[str, Any] = {
        plan.names.pick("trl", "dtype", "torch_dtype"): long_dtype(choice.dtype),
        "attn_implementation": choice.attn,
    }
    if "lora" in choice.method:
        found |= {"use_peft": True, "lora_r": choice.lora_rank, "lora_alpha": 2 * choice.lora_rank}
        found["lora_dropout"] = 0.0
        found["lora_target_modules"] = ["all-linear"]
    if "lora" in choice.method and choice.task == "reward":
        found["lora_task_type"] = "SEQ_CLS"
    if choice.method == "qlora":
        found |= {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "use_bnb_nested_quant": True}
        if choice.parallel in ("zero3", "fsdp") and plan.names.has("trl", "bnb_4bit_quant_storage"):
            found["bnb_4bit_quant_storage"] = long_dtype(choice.dtype)
    return found


def generation(plan: Plan) -> dict[str, Any]:
    """Return GRPOConfig's part: half of the length for the answer, no reference model, vLLM's share."""
    choice, names = plan.choice, plan.names
    found: dict[str, Any] = {
        "num_generations": choice.num_generations,
        "generation_batch_size": choice.global_batch,
        "max_completion_length": choice.seq // 2,
        "max_prompt_length": choice.seq - choice.seq // 2,
        "beta": 0.0,
        "use_vllm": choice.vllm_mode is not None,
    }
    if choice.vllm_mode:
        found["vllm_mode"] = choice.vllm_mode
    if choice.vllm_mode == "colocate":
        found["vllm_gpu_memory_utilization"] = choice.vllm_utilization
        found["vllm_tensor_parallel_size"] = choice.vllm_tp
        found[names.pick("trl", "vllm_max_model_length", "vllm_max_model_len")] = choice.max_model_len
    return names.keep("trl", found)
