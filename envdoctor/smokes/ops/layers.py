"""Layers of a language model, forward and backward."""

from __future__ import annotations

from . import plain
from .context import Context
from .registry import op
from .trial import Trial


@op("softmax.bf16", tolerance=1e-2)
def softmax_bf16(ctx: Context) -> Trial:
    """bf16 softmax, forward and backward."""
    return ctx.differentiable(lambda x: ctx.torch.softmax(x, -1), ctx.randn(64, 257), plain=plain.softmax)


@op("layer_norm.bf16", tolerance=2e-2)
def layer_norm_bf16(ctx: Context) -> Trial:
    """bf16 layer norm, forward and backward."""
    norm = ctx.torch.nn.functional.layer_norm
    inputs = ctx.randn(64, 256), ctx.randn(256), ctx.randn(256)
    return ctx.differentiable(
        lambda x, weight, bias: norm(x, (256,), weight, bias), *inputs, plain=plain.layer_norm
    )


@op("embedding.bf16", tolerance=1e-2)
def embedding_bf16(ctx: Context) -> Trial:
    """bf16 embedding with repeated tokens, forward and backward."""
    tokens = ctx.randint(0, 128, (4, 64))
    embed = ctx.torch.nn.functional.embedding
    return ctx.differentiable(
        lambda table: embed(tokens.to(table.device), table),
        ctx.randn(128, 64),
        plain=lambda numpy, *given: plain.embedding(numpy, ctx.plain(numpy, tokens), *given),
    )


@op("cross_entropy.bf16", tolerance=1e-2)
def cross_entropy_bf16(ctx: Context) -> Trial:
    """bf16 cross-entropy, forward and backward."""
    targets = ctx.randint(0, 1024, (64,))
    loss = ctx.torch.nn.functional.cross_entropy
    return ctx.differentiable(
        lambda logits: loss(logits, targets.to(logits.device)),
        ctx.randn(64, 1024),
        plain=lambda numpy, *given: plain.cross_entropy(numpy, ctx.plain(numpy, targets), *given),
    )


@op("conv2d.fp16", tolerance=5e-3)
def conv2d_fp16(ctx: Context) -> Trial:
    """fp16 convolution (cuDNN on a GPU), forward and backward."""
    torch = ctx.torch
    if ctx.on_gpu and not torch.backends.cudnn.is_available():
        raise RuntimeError("cuDNN is not available in this torch")
    inputs = ctx.randn(2, 16, 24, 24, dtype=torch.float16), ctx.randn(32, 16, 3, 3, dtype=torch.float16)
    return ctx.differentiable(
        lambda x, w: torch.nn.functional.conv2d(x, w, padding=1), *inputs, plain=plain.conv2d
    )
