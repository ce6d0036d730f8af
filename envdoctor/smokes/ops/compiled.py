"""Kernels compiled on the spot: Triton by itself, and torch.compile."""

from __future__ import annotations

from typing import Any

from . import plain
from .context import Context
from .registry import Skip, op
from .trial import Trial


@op("triton.add", tolerance=1e-6, needs=("triton",), cpu=False)
def triton_add(ctx: Context) -> Trial:
    """A Triton kernel that adds two vectors, compiled here."""
    from . import triton_kernel

    fp32 = ctx.torch.float32
    left, right = ctx.randn(5000, dtype=fp32), ctx.randn(5000, dtype=fp32)
    return Trial(
        lambda: triton_kernel.add(left, right),
        lambda: ctx.exact(left) + ctx.exact(right),
        lambda numpy: ctx.plain(numpy, left) + ctx.plain(numpy, right),
    )


@op("compile.inductor", tolerance=1e-4, lane="compile", quick=False, patience=2.0)
def compile_inductor(ctx: Context) -> Trial:
    """torch.compile of a fused norm and activation."""
    torch = ctx.torch
    if not hasattr(torch, "compile"):
        raise Skip(f"torch {torch.__version__} has no torch.compile")

    def function(x: Any, scale: Any) -> Any:
        return torch.tanh(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale)

    compiled = torch.compile(function, dynamic=False)
    inputs = ctx.randn(64, 256, dtype=torch.float32), ctx.randn(256, dtype=torch.float32)
    return Trial(
        lambda: compiled(*inputs),
        lambda: function(*[ctx.exact(tensor) for tensor in inputs]),
        lambda numpy: plain.scaled_tanh(numpy, *(ctx.plain(numpy, tensor) for tensor in inputs)),
    )
