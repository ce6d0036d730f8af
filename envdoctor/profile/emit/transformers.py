"""transformers' TrainingArguments as JSON, and how the model is to be loaded for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.memory.methods import METHODS
from envdoctor.profile.emit import deepspeed, trained
from envdoctor.profile.emit.layout import to_json

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan
    from envdoctor.profile.workload import Choice


def rate(choice: Choice) -> float:
    """Return a usual learning rate: lower where the model's own weights are trained."""
    return 1e-5 if METHODS[choice.method].layers else 1e-4


def training_arguments(plan: Plan, framework: str = "transformers") -> dict[str, Any]:
    """Return the arguments that decide memory, under the names of the release at hand."""
    choice, names = plan.choice, plan.names
    checkpointing = names.pick("transformers", "activation_checkpointing", "gradient_checkpointing")
    found: dict[str, Any] = {
        "output_dir": "out",
        "per_device_train_batch_size": choice.batch,
        "gradient_accumulation_steps": choice.grad_accum,
        "bf16": choice.amp == "bf16",
        "fp16": choice.amp == "fp16",
        "optim": choice.optim,
        "learning_rate": rate(choice),
        "num_train_epochs": 1,
    }
    # FSDP's own wrappers recompute; said in words, since TRL's default is to do it as well
    found[checkpointing] = choice.grad_ckpt and choice.parallel != "fsdp"
    if choice.grad_ckpt and choice.parallel != "fsdp":
        found[f"{checkpointing}_kwargs"] = {"use_reentrant": False}
    known = trained.words(plan, framework)
    found |= {key: value for key, value in known.items() if not key.endswith("_config")}
    if choice.liger:
        found["use_liger_kernel"] = True
    if choice.deepspeed:
        found["deepspeed"] = deepspeed.FILE
    if choice.parallel == "fsdp":
        found |= sharding(plan)
    return found


def sharding(plan: Plan) -> dict[str, Any]:
    """Return FSDP's switch (a flag from transformers 5.10 on, words before) and its configuration."""
    words = plan.work.stack.within("transformers", "<5.10")
    config: dict[str, Any] = {"activation_checkpointing": plan.choice.grad_ckpt}
    if words:
        offload = " offload" if plan.choice.offload_params else ""
        return {"fsdp": f"full_shard auto_wrap{offload}", "fsdp_config": config}
    config = {"version": 2, "reshard_after_forward": True, **config}
    return {"fsdp": True, "fsdp_config": {**config, "cpu_offload": plan.choice.offload_params}}


def quantization(plan: Plan) -> dict[str, Any]:
    """Return BitsAndBytesConfig's arguments; sharded 4-bit weights must be stored in a floating dtype."""
    dtype = long_dtype(plan.choice.dtype)
    found: dict[str, Any] = {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": dtype,
    }
    if plan.choice.parallel in ("zero3", "fsdp"):
        found["bnb_4bit_quant_storage"] = dtype
    return found


def long_dtype(short: str) -> str:
    """Return torch's name of a dtype."""
    return {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[short]


def _loading(plan: Plan) -> dict[str, Any]:
    choice = plan.choice
    newer = plan.work.stack.within("transformers", ">=4.56") is not False
    found: dict[str, Any] = {
        "pretrained_model_name_or_path": plan.model,
        "dtype" if newer else "torch_dtype": long_dtype(choice.dtype),
        "attn_implementation": choice.attn,
    }
    if choice.method == "qlora":
        found["quantization_config"] = quantization(plan)
    return found


def emit(plan: Plan) -> dict[str, str]:
    """Return `training_args.json`, and `model.json` with the arguments of from_pretrained and LoraConfig."""
    model: dict[str, Any] = {"from_pretrained": _loading(plan), "max_length": plan.choice.seq}
    model |= {
        key: value for key, value in trained.words(plan, "transformers").items() if key.endswith("_config")
    }
    if "lora" in plan.choice.method:
        rank = plan.choice.lora_rank
        model["lora_config"] = {"r": rank, "lora_alpha": 2 * rank, "target_modules": "all-linear"}
    files = {"training_args.json": to_json(training_arguments(plan)), "model.json": to_json(model)}
    return {**files, **deepspeed.beside(plan)}
