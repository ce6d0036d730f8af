"""LLaMA-Factory's YAML for `llamafactory-cli train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.profile.emit import deepspeed, trained
from envdoctor.profile.emit.layout import to_yaml
from envdoctor.profile.emit.transformers import rate, sharding

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan

_ATTENTION = {"flash_attention_2": "fa2", "sdpa": "sdpa", "eager": "disabled"}
_TEMPLATES = {
    "qwen2": "qwen",
    "qwen3": "qwen3",
    "llama": "llama3",
    "mistral": "mistral",
    "gemma2": "gemma2",
    "glm": "glm4",
    "glm4": "glm4",
    "phi3": "phi",
}


_STAGES = {"reward": "rm"}


def emit(plan: Plan) -> dict[str, str]:
    """Return `train.yaml`; `dataset` stands in it as an example to replace."""
    command = f"{_launcher(plan)}llamafactory-cli train train.yaml"
    return {"train.yaml": to_yaml(arguments(plan), command), **deepspeed.beside(plan)}


def arguments(plan: Plan) -> dict[str, Any]:
    """Return what the file says."""
    choice = plan.choice
    values: dict[str, Any] = {
        "stage": _STAGES.get(choice.task, choice.task),
        "do_train": True,
        "model_name_or_path": plan.model,
        "template": _TEMPLATES.get(plan.work.shape.model_type, "default"),
        "dataset": "identity" if choice.task == "sft" else "dpo_en_demo",
        "output_dir": "out",
        "finetuning_type": "lora" if "lora" in choice.method else "full",
        **_adapter(plan),
        "cutoff_len": choice.seq,
        "per_device_train_batch_size": choice.batch,
        "gradient_accumulation_steps": choice.grad_accum,
        "optim": choice.optim,
        "learning_rate": rate(choice),
        "num_train_epochs": 1,
        "bf16": choice.amp == "bf16",
        "fp16": choice.amp == "fp16",
        "flash_attn": _ATTENTION[choice.attn],
        "disable_gradient_checkpointing": not choice.grad_ckpt,
    }
    if choice.grad_ckpt and plan.names.has("llamafactory", "use_reentrant_gc"):
        values["use_reentrant_gc"] = False
    values |= trained.words(plan, "llamafactory")
    if choice.liger:
        values["enable_liger_kernel"] = True
    if choice.deepspeed:
        values["deepspeed"] = deepspeed.FILE
    if choice.parallel == "fsdp":
        values |= sharding(plan)
    return values


def _launcher(plan: Plan) -> str:
    return f"FORCE_TORCHRUN=1 NPROC_PER_NODE={plan.choice.gpus} " if plan.choice.parallel != "none" else ""


def _adapter(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    if "lora" not in choice.method:
        return {}
    found: dict[str, Any] = {
        "lora_rank": choice.lora_rank,
        "lora_alpha": 2 * choice.lora_rank,
        "lora_target": "all",
    }
    if choice.method == "qlora":
        found |= {"quantization_bit": 4, "double_quantization": True, "quantization_type": "nf4"}
        if plan.names.has("llamafactory", "quantization_method"):
            older = plan.work.stack.within("llamafactory", "<0.9.3")
            found["quantization_method"] = "bitsandbytes" if older else "bnb"
    return found
