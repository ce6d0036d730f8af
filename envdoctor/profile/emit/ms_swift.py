"""ms-swift's arguments: a YAML file from version 4 on, a command line before."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from envdoctor.profile.emit import deepspeed, trained
from envdoctor.profile.emit.layout import to_json, to_yaml
from envdoctor.profile.emit.transformers import long_dtype, rate

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan

FSDP = "fsdp.json"
_DATA = {
    "sft": "AI-ModelScope/alpaca-gpt4-data-en",
    "grpo": "AI-MO/NuminaMath-TIR",
}
_PAIRS = "hjh0119/shareAI-Llama3-DPO-zh-en-emoji"
_TYPES = {"reward": "rm"}
"""Its names of tasks that others call otherwise."""


def emit(plan: Plan) -> dict[str, str]:
    """Return `train.yaml` (or `train.sh` for ms-swift 3); the data set in it is an example to replace."""
    values = arguments(plan)
    files = {**deepspeed.beside(plan), **_beside(plan)}
    action = "sft" if plan.choice.task == "sft" else "rlhf"
    if plan.work.stack.within("ms-swift", "<4"):
        return {"train.sh": _script(values, action, plan.choice.gpus), **files}
    launch = f"NPROC_PER_NODE={plan.choice.gpus} " if plan.choice.gpus > 1 else ""
    return {"train.yaml": to_yaml(values, f"{launch}swift {action} train.yaml"), **files}


def arguments(plan: Plan) -> dict[str, Any]:
    """Return the arguments under the names of the release at hand."""
    choice, names = plan.choice, plan.names
    tuner = names.pick("ms-swift", "tuner_type", "train_type")
    found: dict[str, Any] = {
        "model": plan.model,
        "dataset": [_DATA.get(choice.task, _PAIRS)],
        "output_dir": "out",
        tuner: "lora" if "lora" in choice.method else "full",
        "torch_dtype": long_dtype(choice.dtype),
        "max_length": choice.seq,
        "per_device_train_batch_size": choice.batch,
        "gradient_accumulation_steps": choice.grad_accum,
        "learning_rate": rate(choice),
        "num_train_epochs": 1,
        "optim": choice.optim,
        "attn_impl": choice.attn,
        "gradient_checkpointing": choice.grad_ckpt and choice.parallel != "fsdp",
        **_adapter(plan),
        **_sharding(plan),
    }
    if choice.grad_ckpt and choice.parallel != "fsdp":
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    found |= trained.words(plan, "ms-swift")
    if choice.liger:
        found["use_liger_kernel"] = True
    if choice.task != "sft":
        found["rlhf_type"] = _TYPES.get(choice.task, choice.task)
    return {**found, **(_generation(plan) if choice.task == "grpo" else {})}


def _adapter(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    if "lora" not in choice.method:
        return {}
    found: dict[str, Any] = {
        "lora_rank": choice.lora_rank,
        "lora_alpha": 2 * choice.lora_rank,
        "lora_dropout": 0.0,
        "target_modules": ["all-linear"],
    }
    if choice.method == "qlora":
        found |= {
            "quant_method": "bnb",
            "quant_bits": 4,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": True,
            "bnb_4bit_compute_dtype": long_dtype(choice.dtype),
        }
        if choice.parallel in ("zero3", "fsdp"):
            found["bnb_4bit_quant_storage"] = long_dtype(choice.dtype)
    return found


def _sharding(plan: Plan) -> dict[str, Any]:
    if plan.choice.deepspeed:
        return {"deepspeed": deepspeed.FILE}
    if plan.choice.parallel != "fsdp":
        return {}
    return {"fsdp": FSDP if _beside(plan) else "fsdp2"}


def _beside(plan: Plan) -> dict[str, str]:
    """Return FSDP's file: the preset `fsdp2` always recomputes and never offloads."""
    choice = plan.choice
    if choice.parallel != "fsdp" or plan.work.stack.within("ms-swift", "<4"):
        return {}
    config = {
        "fsdp_version": 2,
        "reshard_after_forward": True,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "cpu_ram_efficient_loading": True,
        "state_dict_type": "SHARDED_STATE_DICT",
        "activation_checkpointing": choice.grad_ckpt,
    }
    words = f"full_shard auto_wrap{' offload' if choice.offload_params else ''}"
    return {FSDP: to_json({"fsdp": words, "fsdp_config": config})}


def _generation(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    found: dict[str, Any] = {
        "num_generations": choice.num_generations,
        "max_completion_length": choice.seq // 2,
        "beta": 0.0,
        "use_vllm": choice.vllm_mode is not None,
    }
    if choice.vllm_mode is None:
        return found
    found["vllm_mode"] = choice.vllm_mode
    if choice.vllm_mode == "colocate":
        found |= {
            "vllm_gpu_memory_utilization": choice.vllm_utilization,
            "vllm_tensor_parallel_size": choice.vllm_tp,
            "vllm_max_model_len": choice.max_model_len,
        }
    else:
        found |= {"vllm_server_host": "127.0.0.1", "vllm_server_port": 8000}
    return found


def _script(values: Mapping[str, Any], action: str, gpus: int) -> str:
    launch = f"NPROC_PER_NODE={gpus} " if gpus > 1 else ""
    lines = [f"{launch}swift {action}"]
    for key, value in values.items():
        lines.append(f"    --{key} {_word(value)}")
    return "#!/bin/sh\n" + " \\\n".join(lines) + "\n"


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(shlex.quote(str(item)) for item in value)
    if isinstance(value, Mapping):
        return shlex.quote(json.dumps(value))
    return str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))
