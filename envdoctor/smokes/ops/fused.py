"""Optimizers that must be built before they run."""

from __future__ import annotations

from typing import Any

from .context import Context
from .registry import Skip, Trial, op


@op("deepspeed.fused_adam", tolerance=1e-3, needs=("deepspeed",), cpu=False, quick=False, patience=10.0)
def deepspeed_fused_adam(ctx: Context) -> Trial:
    """First step of DeepSpeed's fused Adam, where it is built (or with --build)."""
    from deepspeed.git_version_info import installed_ops

    if not (installed_ops.get("fused_adam") or ctx.build):
        raise Skip("fused_adam is not built into this deepspeed; --build builds it for the run")
    from deepspeed.ops.adam import FusedAdam

    torch = ctx.torch
    weight, gradient = (ctx.randn(128, 128, dtype=torch.float32) for _ in range(2))

    def call() -> Any:
        parameter = torch.nn.Parameter(weight.clone())
        parameter.grad = gradient.clone()
        FusedAdam([parameter], lr=0.01, eps=1e-8, weight_decay=0.0).step()
        return parameter.detach() - weight

    def reference() -> Any:
        exact = ctx.exact(gradient)
        return -0.01 * exact / (exact.abs() + 1e-8)

    return Trial(call, reference)
