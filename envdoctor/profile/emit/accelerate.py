"""accelerate's launch configuration: how many processes, and how they shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.profile.emit.layout import to_yaml

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan

_KINDS = {"none": "NO", "ddp": "MULTI_GPU", "fsdp": "FSDP"}


def emit(plan: Plan) -> dict[str, str]:
    """Return `accelerate.yaml`."""
    choice = plan.choice
    values: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": _KINDS.get(choice.parallel, "DEEPSPEED"),
        "mixed_precision": choice.amp if choice.amp != "none" else "no",
        "num_machines": 1,
        "num_processes": choice.gpus,
        "machine_rank": 0,
        "use_cpu": False,
    }
    if choice.deepspeed:
        values["deepspeed_config"] = _zero(plan)
    if choice.parallel == "fsdp":
        values["fsdp_config"] = _fsdp(plan)
    return {"accelerate.yaml": to_yaml(values, "accelerate launch --config_file accelerate.yaml train.py")}


def _zero(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    return {
        "zero_stage": choice.zero_stage,
        "gradient_accumulation_steps": choice.grad_accum,
        "gradient_clipping": 1.0,
        "offload_optimizer_device": "cpu" if choice.offload_optimizer else "none",
        "offload_param_device": "cpu" if choice.offload_params else "none",
        "zero3_init_flag": choice.zero_stage == 3,
        "zero3_save_16bit_model": choice.zero_stage == 3,
    }


def _fsdp(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    second = plan.work.stack.within("accelerate", ">=1.6") is not False
    found: dict[str, Any] = {
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_offload_params": choice.offload_params,
        "fsdp_activation_checkpointing": choice.grad_ckpt,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_cpu_ram_efficient_loading": True,
    }
    if second:
        return {"fsdp_version": 2, "fsdp_reshard_after_forward": True, **found}
    return {"fsdp_sharding_strategy": "FULL_SHARD", "fsdp_use_orig_params": True, **found}
