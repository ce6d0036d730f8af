"""Triangles of a matrix: causal masks are made of them, and old torch lacks them in bf16."""

from __future__ import annotations

from .context import Context
from .registry import op
from .trial import Trial


@op("triu.bf16", tolerance=0.0)
def triu_bf16(ctx: Context) -> Trial:
    """Upper triangle of a bf16 matrix."""
    matrix = ctx.randn(67, 129)
    return Trial(
        lambda: matrix.triu(1),
        lambda: ctx.exact(matrix).triu(1),
        lambda np: np.triu(ctx.plain(np, matrix), 1),
    )


@op("tril.bf16", tolerance=0.0)
def tril_bf16(ctx: Context) -> Trial:
    """Lower triangle of a bf16 matrix."""
    matrix = ctx.randn(67, 129)
    return Trial(
        lambda: matrix.tril(-1),
        lambda: ctx.exact(matrix).tril(-1),
        lambda np: np.tril(ctx.plain(np, matrix), -1),
    )
