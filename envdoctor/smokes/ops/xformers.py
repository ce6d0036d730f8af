"""xformers."""

from __future__ import annotations

from typing import Any

from .attention import causal_attention
from .context import Context
from .registry import op
from .trial import Trial


@op("xformers.attention", tolerance=2e-2, needs=("xformers",), cpu=False, quick=False)
def xformers_attention(ctx: Context) -> Trial:
    """Memory-efficient attention of xformers, causal, forward and backward."""
    from xformers import ops

    dtype = ctx.torch.float16 if ctx.sm < 80 else ctx.torch.bfloat16
    inputs = [ctx.randn(2, 128, 4, 64, dtype=dtype) for _ in range(3)]

    def attend(*tensors: Any) -> Any:
        return ops.memory_efficient_attention(*tensors, attn_bias=ops.LowerTriangularMask())

    def reference(*tensors: Any) -> Any:
        return causal_attention(*[tensor.transpose(1, 2) for tensor in tensors]).transpose(1, 2)

    return ctx.differentiable(attend, *inputs, reference=reference)
