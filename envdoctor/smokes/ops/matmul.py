"""Matrix products, one op a precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import plain
from .context import Context
from .registry import Skip, op
from .trial import Trial

M, K, N = (
    192,
    256,
    320,
)  # multiples of 16, as fp8 and int8 kernels ask; all different, so that no layout hides


def _product(ctx: Context, dtype: Any, tf32: bool = False) -> Trial:
    """Return a Trial of a product of `dtype`, TF32 allowed or not."""
    torch = ctx.torch
    left, right = ctx.randn(M, K, dtype=dtype), ctx.randn(K, N, dtype=dtype)

    def call() -> Any:
        matmul = torch.backends.cuda.matmul
        before, matmul.allow_tf32 = matmul.allow_tf32, tf32
        try:
            return left @ right
        finally:
            matmul.allow_tf32 = before

    return Trial(call, lambda: ctx.exact(left) @ ctx.exact(right), _plain_product(ctx, left, right))


def _plain_product(ctx: Context, left: Any, right: Any, scale: float = 1.0) -> Callable[[Any], Any]:
    """Return the product in NumPy's float64, from the values as they are stored."""

    def product(numpy: Any) -> Any:
        given = (numpy.array(ctx.exact(tensor).tolist()) for tensor in (left, right))
        return plain.product(numpy, *given) * scale

    return product


@op("matmul.fp32", tolerance=1e-5)
def matmul_fp32(ctx: Context) -> Trial:
    """fp32 matrix product, TF32 off."""
    return _product(ctx, ctx.torch.float32)


@op("matmul.tf32", tolerance=2e-3, min_sm=80, cpu=False)
def matmul_tf32(ctx: Context) -> Trial:
    """fp32 matrix product on TF32 tensor cores."""
    return _product(ctx, ctx.torch.float32, tf32=True)


@op("matmul.fp16", tolerance=3e-3)
def matmul_fp16(ctx: Context) -> Trial:
    """fp16 matrix product."""
    return _product(ctx, ctx.torch.float16)


@op("matmul.bf16", tolerance=1e-2)
def matmul_bf16(ctx: Context) -> Trial:
    """bf16 matrix product."""
    return _product(ctx, ctx.torch.bfloat16)


@op("matmul.fp8", tolerance=1e-2, min_sm=89)
def matmul_fp8(ctx: Context) -> Trial:
    """Scaled fp8 (e4m3) matrix product with bf16 output."""
    torch = ctx.torch
    if not hasattr(torch, "_scaled_mm"):
        raise Skip(f"torch {torch.__version__} has no _scaled_mm")
    left = ctx.randn(M, K, dtype=torch.float8_e4m3fn)
    right = ctx.randn(N, K, dtype=torch.float8_e4m3fn).t()
    scales = [torch.tensor(s, dtype=torch.float32, device=ctx.device) for s in (0.5, 0.25)]

    def call() -> Any:
        out = torch._scaled_mm(left, right, scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16)
        return out[0] if isinstance(out, tuple) else out

    return Trial(
        call, lambda: ctx.exact(left) @ ctx.exact(right) * 0.125, _plain_product(ctx, left, right, 0.125)
    )


@op("matmul.int8", tolerance=0.0, min_sm=75)
def matmul_int8(ctx: Context) -> Trial:
    """int8 matrix product with int32 output, exact."""
    torch = ctx.torch
    if not hasattr(torch, "_int_mm"):
        raise Skip(f"torch {torch.__version__} has no _int_mm")
    left = ctx.randint(-128, 128, (M, K), torch.int8)
    right = ctx.randint(-128, 128, (N, K), torch.int8).t()
    return Trial(
        lambda: torch._int_mm(left, right),
        lambda: ctx.exact(left) @ ctx.exact(right),
        _plain_product(ctx, left, right),
    )
