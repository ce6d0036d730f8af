"""The flash-attn packages, one op a generation, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .attention import causal_attention
from .context import Context
from .registry import op
from .trial import Trial


def _attention(ctx: Context, kernel: Callable[..., Any]) -> Trial:
    """Return a Trial of a kernel that takes (batch, tokens, heads, width)."""
    inputs = [ctx.randn(2, 128, 4, 64) for _ in range(3)]

    def attend(*tensors: Any) -> Any:
        out = kernel(*tensors, causal=True)
        return out[0] if isinstance(out, tuple) else out

    def reference(*tensors: Any) -> Any:
        return causal_attention(*[tensor.transpose(1, 2) for tensor in tensors]).transpose(1, 2)

    return ctx.differentiable(attend, *inputs, reference=reference)


@op("flash_attn.2", tolerance=2e-2, needs=("flash_attn",), min_sm=80, cpu=False, quick=False)
def flash_attn_2(ctx: Context) -> Trial:
    """flash-attn 2, causal."""
    from flash_attn import flash_attn_func

    return _attention(ctx, flash_attn_func)


@op("flash_attn.3", tolerance=2e-2, needs=("flash_attn_interface",), min_sm=90, cpu=False, quick=False)
def flash_attn_3(ctx: Context) -> Trial:
    """flash-attn 3 (Hopper), causal."""
    from flash_attn_interface import flash_attn_func  # type: ignore[import-not-found]

    return _attention(ctx, flash_attn_func)


@op("flash_attn.4", tolerance=2e-2, needs=("flash_attn.cute",), min_sm=90, cpu=False, quick=False)
def flash_attn_4(ctx: Context) -> Trial:
    """flash-attn 4 (CuTe), causal."""
    from flash_attn.cute import flash_attn_func

    return _attention(ctx, flash_attn_func)
