"""axolotl's YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError
from envdoctor.memory.methods import has_kernels
from envdoctor.profile.emit import deepspeed, trained
from envdoctor.profile.emit.layout import to_yaml
from envdoctor.profile.emit.transformers import rate

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan

KERNELS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")
"""Kernels for adapters, which axolotl turns on with a warning where nothing is said of them.

https://github.com/axolotl-ai-cloud/axolotl/blob/main/src/axolotl/utils/schemas/config.py
"""


_ALPACA = {"path": "tatsu-lab/alpaca", "type": "alpaca"}
_PAIRS = {"path": "Intel/orca_dpo_pairs", "split": "train", "type": "chatml.intel"}


def emit(plan: Plan) -> dict[str, str]:
    """Return `train.yaml`; the data set in it is an example to replace."""
    return {"train.yaml": to_yaml(arguments(plan), "axolotl train train.yaml"), **deepspeed.beside(plan)}


def arguments(plan: Plan) -> dict[str, Any]:
    """Return what the file says."""
    choice = plan.choice
    values: dict[str, Any] = {
        "base_model": plan.model,
        "datasets": [_PAIRS if choice.task == "dpo" else _ALPACA],
        "output_dir": "out",
        **_adapter(plan),
        "sequence_len": choice.seq,
        "micro_batch_size": choice.batch,
        "gradient_accumulation_steps": choice.grad_accum,
        "num_epochs": 1,
        "learning_rate": rate(choice),
        "optimizer": choice.optim,
        "lr_scheduler": "cosine",
        "bf16": choice.amp == "bf16",
        "fp16": choice.amp == "fp16",
        "gradient_checkpointing": choice.grad_ckpt,
        **_attention(plan),
        **_sharding(plan),
    }
    values |= trained.words(plan, "axolotl")
    if choice.grad_ckpt:
        values["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if choice.liger:
        values |= {
            "plugins": ["axolotl.integrations.liger.LigerPlugin"],
            "liger_rms_norm": True,
            "liger_glu_activation": True,
            "liger_fused_linear_cross_entropy": True,
        }
    if choice.task == "dpo":
        values["rl"] = "dpo"
    return {**values, **(_generation(plan) if choice.task == "grpo" else {})}


def _adapter(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    if "lora" not in choice.method:
        return {}
    found: dict[str, Any] = {
        "adapter": choice.method,
        "lora_r": choice.lora_rank,
        "lora_alpha": 2 * choice.lora_rank,
        "lora_dropout": 0.0,
        "lora_target_linear": True,
    }
    if plan.names.has("axolotl", "lora_mlp_kernel"):
        found |= dict.fromkeys(KERNELS, choice.task == "sft" and has_kernels(plan.work.shape))
    return {**found, "load_in_4bit": True} if choice.method == "qlora" else found


def _attention(plan: Plan) -> dict[str, Any]:
    if plan.names.has("axolotl", "attn_implementation"):
        return {"attn_implementation": plan.choice.attn}
    return {"flash_attention": True} if plan.choice.attn == "flash_attention_2" else {"sdp_attention": True}


def _sharding(plan: Plan) -> dict[str, Any]:
    if plan.choice.deepspeed:
        return {"deepspeed": deepspeed.FILE}
    if plan.choice.parallel != "fsdp":
        return {}
    config = {
        "offload_params": plan.choice.offload_params,
        "reshard_after_forward": True,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "state_dict_type": "FULL_STATE_DICT",
    }
    return {"fsdp_version": 2, "fsdp_config": config}


def _generation(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    least = (choice.num_generations or 1) * choice.gpus
    if choice.global_batch < least:
        raise InputError(
            f"--for axolotl: it wants a --global-batch of {least} or more for {choice.gpus} cards"
        )
    sized = plan.names.has("axolotl", "trl.generation_batch_size")
    engine: dict[str, Any] = {"use_vllm": choice.vllm_mode is not None}
    if choice.vllm_mode:
        engine["vllm_mode"] = choice.vllm_mode
    found: dict[str, Any] = {
        "rl": "grpo",
        "trl": {
            "num_generations": choice.num_generations,
            **({"generation_batch_size": choice.global_batch} if sized else {}),
            "max_completion_length": choice.seq // 2,
            "beta": 0.0,
            **engine,
        },
    }
    if choice.vllm_mode:
        found["vllm"] = {
            "gpu_memory_utilization": choice.vllm_utilization,
            "tensor_parallel_size": choice.vllm_tp,
            "max_model_len": choice.max_model_len,
        }
    return found
