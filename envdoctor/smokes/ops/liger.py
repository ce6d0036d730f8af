"""Liger's Triton kernels."""

from __future__ import annotations

from typing import Any

from .context import Context
from .registry import op
from .trial import Trial


@op("liger.cross_entropy", tolerance=1e-2, needs=("liger_kernel",), cpu=False, quick=False, patience=2.0)
def liger_cross_entropy(ctx: Context) -> Trial:
    """Liger's cross-entropy, forward and backward."""
    from liger_kernel.transformers import LigerCrossEntropyLoss

    targets = ctx.randint(0, 1024, (64,))
    loss = LigerCrossEntropyLoss()

    def reference(logits: Any) -> Any:
        return ctx.torch.nn.functional.cross_entropy(logits, targets.cpu())

    # It writes the gradient into its input: the leaf is kept whole by a product with one.
    return ctx.differentiable(
        lambda logits: loss(logits * 1, targets), ctx.randn(64, 1024), reference=reference
    )
