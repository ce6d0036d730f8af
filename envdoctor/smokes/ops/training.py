"""Mixed precision as trainers use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import plain
from .context import Context
from .registry import op
from .trial import Trial

RATE = 0.5


def _layer(ctx: Context) -> tuple[Any, Any]:
    """Return inputs and weights of a layer in fp32 on the device."""
    fp32 = ctx.torch.float32
    return ctx.randn(32, 128, dtype=fp32), ctx.randn(64, 128, dtype=fp32, scale=0.1)


def _loss(ctx: Context, inputs: Any, weight: Any) -> Any:
    """Return the mean square of tanh(x·Wᵀ)."""
    return ctx.torch.nn.functional.linear(inputs, weight).tanh().pow(2).mean()


def _reference_step(ctx: Context, inputs: Any, weight: Any) -> tuple[Any, Any]:
    """Return the loss and the change of the weight after one plain step, in float64."""
    leaf = ctx.exact(weight).requires_grad_()
    loss = _loss(ctx, ctx.exact(inputs), leaf)
    loss.backward()
    return loss.detach(), -RATE * leaf.grad


def _plain_step(ctx: Context, inputs: Any, weight: Any) -> Callable[[Any], Any]:
    """Return the same step in NumPy."""
    return lambda numpy: plain.tanh_step(numpy, ctx.plain(numpy, inputs), ctx.plain(numpy, weight), RATE)


@op("amp.bf16", tolerance=2e-2)
def amp_bf16(ctx: Context) -> Trial:
    """A layer under bf16 autocast, forward and backward."""
    torch = ctx.torch
    inputs, weight = _layer(ctx)

    def call() -> Any:
        leaf = weight.clone().requires_grad_()
        with torch.autocast(ctx.device.split(":")[0], dtype=torch.bfloat16):
            loss = _loss(ctx, inputs, leaf)
        loss.backward()
        return loss.detach(), -RATE * leaf.grad

    return Trial(call, lambda: _reference_step(ctx, inputs, weight), _plain_step(ctx, inputs, weight))


@op("amp.fp16_scaler", tolerance=1e-2, cpu=False, lane="compile", quick=False)
def amp_fp16_scaler(ctx: Context) -> Trial:
    """A layer under fp16 autocast with GradScaler, forward, backward and one optimizer step."""
    torch = ctx.torch
    inputs, weight = _layer(ctx)

    def call() -> Any:
        leaf = weight.clone().requires_grad_()
        optimizer, scaler = torch.optim.SGD([leaf], lr=RATE), _scaler(torch)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = _loss(ctx, inputs, leaf)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), leaf.detach() - weight

    return Trial(call, lambda: _reference_step(ctx, inputs, weight), _plain_step(ctx, inputs, weight))


def _scaler(torch: Any) -> Any:
    """Return a gradient scaler, by the name this torch gives it."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", init_scale=256.0)
    return torch.cuda.amp.GradScaler(init_scale=256.0)
