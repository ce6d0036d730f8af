"""vLLM's YAML for `vllm serve --config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envdoctor.errors import InputError
from envdoctor.profile.emit.layout import to_yaml
from envdoctor.profile.emit.transformers import long_dtype

if TYPE_CHECKING:
    from envdoctor.profile.emit.plan import Plan


def emit(plan: Plan) -> dict[str, str]:
    """Return `vllm.yaml`; raises InputError when the engine lives inside the trainer."""
    choice = plan.choice
    if choice.task == "grpo" and choice.vllm_mode != "server":
        raise InputError("--for vllm: the chosen setting runs vLLM inside the trainer; ask for trl")
    values: dict[str, Any] = {
        "model": plan.model,
        "dtype": long_dtype("bf16" if plan.work.bf16 else "fp16"),
        "gpu-memory-utilization": choice.vllm_utilization,
        "max-model-len": choice.max_model_len,
        "max-num-seqs": choice.max_num_seqs,
        "tensor-parallel-size": choice.vllm_tp,
        "enable-prefix-caching": True,
    }
    if choice.task == "serve" and (engines := choice.gpus // (choice.vllm_tp or 1)) > 1:
        values["data-parallel-size"] = engines
    kept = {key: value for key, value in values.items() if plan.names.has("vllm", key.replace("-", "_"))}
    return {"vllm.yaml": to_yaml(kept, "vllm serve --config vllm.yaml")}
