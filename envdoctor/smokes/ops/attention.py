"""Scaled dot-product attention of torch, each backend by itself, forward and backward."""

from __future__ import annotations

import math
from typing import Any

from . import plain
from .context import Context
from .registry import Skip, op
from .trial import Trial


def causal_attention(query: Any, key: Any, value: Any) -> Any:
    """Return causal attention by its definition; tensors are (batch, heads, tokens, width)."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    hidden = scores.new_ones(scores.shape[-2:]).triu(1).bool()
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ value


def _only(torch: Any, backend: str) -> Any:
    """Return a context in which torch has that attention backend alone."""
    if hasattr(torch.nn, "attention"):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        names = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
        name = names.get(backend, "MATH")
        if not hasattr(SDPBackend, name):
            raise Skip(f"torch {torch.__version__} has no {backend} attention")
        return sdpa_kernel(getattr(SDPBackend, name))
    if backend == "cudnn" or not hasattr(torch.backends.cuda, "sdp_kernel"):
        raise Skip(f"torch {torch.__version__} has no {backend} attention")
    enabled = {"flash": "enable_flash", "math": "enable_math", "efficient": "enable_mem_efficient"}
    return torch.backends.cuda.sdp_kernel(**{flag: backend == name for name, flag in enabled.items()})


def _attention(ctx: Context, backend: str) -> Trial:
    """Return a Trial of that backend in bf16, or in fp16 where the card has no bf16."""
    torch = ctx.torch
    _only(torch, backend)
    dtype = torch.float16 if 0 < ctx.sm < 80 else torch.bfloat16
    inputs = [ctx.randn(2, 4, 128, 64, dtype=dtype) for _ in range(3)]

    def attend(query: Any, key: Any, value: Any) -> Any:
        with _only(torch, backend):
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    return ctx.differentiable(attend, *inputs, reference=causal_attention, plain=plain.causal_attention)


@op("sdpa.flash", tolerance=2e-2, spread=10.0, min_sm=80)
def sdpa_flash(ctx: Context) -> Trial:
    """Attention by torch's flash kernel."""
    return _attention(ctx, "flash")


@op("sdpa.efficient", tolerance=2e-2, spread=10.0, cpu=False)
def sdpa_efficient(ctx: Context) -> Trial:
    """Attention by torch's memory-efficient kernel."""
    return _attention(ctx, "efficient")


@op("sdpa.cudnn", tolerance=2e-2, spread=10.0, min_sm=80, cpu=False)
def sdpa_cudnn(ctx: Context) -> Trial:
    """Attention by cuDNN."""
    return _attention(ctx, "cudnn")


@op("sdpa.math", tolerance=2e-2, spread=10.0)
def sdpa_math(ctx: Context) -> Trial:
    """Attention by plain products and softmax."""
    return _attention(ctx, "math")
