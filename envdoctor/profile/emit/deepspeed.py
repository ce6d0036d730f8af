"""DeepSpeed's JSON: sizes and stage as the prediction assumed them, numbers in place of `auto`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError
from envdoctor.memory import DeepSpeed
from envdoctor.profile.emit.layout import to_json

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan

FILE = "ds_config.json"


def config(plan: Plan) -> dict[str, Any]:
    """Return the configuration of a ZeRO setting."""
    choice = plan.choice
    return {
        "train_micro_batch_size_per_gpu": choice.batch,
        "gradient_accumulation_steps": choice.grad_accum,
        "train_batch_size": choice.global_batch,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": choice.amp == "bf16"},
        "fp16": {"enabled": choice.amp == "fp16"},
        "zero_optimization": _zero(plan, DeepSpeed()),
    }


def _zero(plan: Plan, sizes: DeepSpeed) -> dict[str, Any]:
    choice = plan.choice
    found: dict[str, Any] = {
        "stage": choice.zero_stage,
        "overlap_comm": sizes.overlap_comm,
        "contiguous_gradients": sizes.contiguous_gradients,
        "reduce_bucket_size": sizes.reduce_bucket,
        "allgather_bucket_size": sizes.allgather_bucket,
    }
    if choice.zero_stage == 3:
        found |= {
            "sub_group_size": sizes.sub_group,
            "stage3_prefetch_bucket_size": sizes.prefetch_bucket,
            "stage3_param_persistence_threshold": sizes.persistence_threshold,
            "stage3_max_live_parameters": sizes.max_live,
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    if choice.offload_optimizer:
        found["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if choice.offload_params:
        found["offload_param"] = {"device": "cpu", "pin_memory": True}
    return found


def emit(plan: Plan) -> dict[str, str]:
    """Return `ds_config.json`; raises InputError when the setting does not use DeepSpeed."""
    if not plan.choice.deepspeed:
        raise InputError(
            f"--for deepspeed: the chosen setting shards with {plan.choice.parallel!r}, not with ZeRO;"
            " ask with --parallel zero2 or zero3"
        )
    return {FILE: to_json(config(plan))}


def beside(plan: Plan) -> dict[str, str]:
    """Return the file for another framework to point at; none without ZeRO."""
    return emit(plan) if plan.choice.deepspeed else {}
