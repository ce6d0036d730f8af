"""Optimizers that must be built before they run."""

from __future__ import annotations

from typing import Any

from .bnb import BETAS, EPSILON, RATE, adam_change
from .context import Context
from .registry import Skip, op
from .trial import Trial


@op("deepspeed.fused_adam", tolerance=1e-3, needs=("deepspeed",), cpu=False, quick=False, patience=10.0)
def deepspeed_fused_adam(ctx: Context) -> Trial:
    """Three steps of DeepSpeed's fused Adam, where it is built (or with --build)."""
    from deepspeed.git_version_info import installed_ops

    if not (installed_ops.get("fused_adam") or ctx.build):
        raise Skip("fused_adam is not built into this deepspeed; --build builds it for the run")
    from deepspeed.ops.adam import FusedAdam

    torch = ctx.torch
    weight, *gradients = (ctx.randn(128, 128, dtype=torch.float32) for _ in range(4))

    def call() -> Any:
        parameter = torch.nn.Parameter(weight.clone())
        optimizer = FusedAdam([parameter], lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
        for gradient in gradients:
            parameter.grad = gradient.clone()
            optimizer.step()
        return parameter.detach() - weight

    return Trial(call, lambda: adam_change([ctx.exact(gradient) for gradient in gradients]))
