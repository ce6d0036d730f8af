"""bitsandbytes: 4-bit storage, quantised products, 8-bit and paged optimizers."""

from __future__ import annotations

from typing import Any

from .context import Context
from .registry import op
from .trial import Trial

NEEDS = ("bitsandbytes",)
BLOCK = 64
# The 16 levels of NF4 (quantiles of the normal distribution) and of FP4 (sign, exponent, mantissa).
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
_FP4_POSITIVE = (0.0, 0.0052083333, 0.16666667, 0.25, 0.33333333, 0.5, 0.66666667, 1.0)
FP4 = tuple(-level for level in _FP4_POSITIVE[:0:-1]) + _FP4_POSITIVE
LEVELS = {"nf4": NF4, "fp4": FP4}
RATE, BETAS, EPSILON = 0.01, (0.9, 0.95), 1e-8


def _stored(ctx: Context, weight: Any, kind: str) -> Any:
    """Return what 4-bit storage keeps of `weight`, in float64: the nearest level, block by block."""
    blocks = ctx.exact(weight).reshape(-1, BLOCK)
    largest = blocks.abs().amax(1, keepdim=True)
    levels = ctx.torch.tensor(LEVELS[kind], dtype=ctx.torch.float64)
    nearest = ((blocks / largest).unsqueeze(-1) - levels).abs().argmin(-1)
    return (levels[nearest] * largest).reshape(weight.shape)


def _quantise(weight: Any, kind: str) -> Any:
    """Return the packed weight and its state."""
    from bitsandbytes import functional

    return functional.quantize_4bit(weight, blocksize=BLOCK, quant_type=kind)


def _round_trip(ctx: Context, kind: str) -> Trial:
    """Return a Trial of quantising and dequantising."""
    from bitsandbytes import functional

    weight = ctx.randn(128, 256, dtype=ctx.torch.float32)  # not bf16: its ratios lie between two levels often
    return Trial(
        lambda: functional.dequantize_4bit(*_quantise(weight, kind)), lambda: _stored(ctx, weight, kind)
    )


def _product(ctx: Context, kind: str) -> Trial:
    """Return a Trial of the product of many tokens and of one token with a 4-bit weight."""
    import bitsandbytes

    weight = ctx.randn(192, 256, dtype=ctx.torch.float32)
    tokens, token = ctx.randn(32, 256), ctx.randn(1, 256)
    packed, state = _quantise(weight, kind)

    def call() -> Any:
        return tuple(bitsandbytes.matmul_4bit(x, packed.t(), quant_state=state) for x in (tokens, token))

    def reference() -> Any:
        stored = _stored(ctx, weight, kind)
        return tuple(ctx.exact(x) @ stored.t() for x in (tokens, token))

    return Trial(call, reference)


@op("bnb.nf4", tolerance=1e-2, needs=NEEDS)
def bnb_nf4(ctx: Context) -> Trial:
    """NF4 quantise and dequantise."""
    return _round_trip(ctx, "nf4")


@op("bnb.fp4", tolerance=1e-2, needs=NEEDS)
def bnb_fp4(ctx: Context) -> Trial:
    """FP4 quantise and dequantise."""
    return _round_trip(ctx, "fp4")


@op("bnb.nf4_matmul", tolerance=2e-2, needs=NEEDS)
def bnb_nf4_matmul(ctx: Context) -> Trial:
    """Product with an NF4 weight, of many tokens and of one."""
    return _product(ctx, "nf4")


@op("bnb.fp4_matmul", tolerance=2e-2, needs=NEEDS)
def bnb_fp4_matmul(ctx: Context) -> Trial:
    """Product with an FP4 weight, of many tokens and of one."""
    return _product(ctx, "fp4")


@op("bnb.linear4bit", tolerance=2e-2, needs=NEEDS)
def bnb_linear4bit(ctx: Context) -> Trial:
    """Linear4bit (NF4), forward and backward to its input."""
    import bitsandbytes

    torch = ctx.torch
    weight = ctx.randn(192, 256)
    layer = bitsandbytes.nn.Linear4bit(
        256, 192, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=False
    )
    layer.weight = bitsandbytes.nn.Params4bit(
        weight.cpu(), requires_grad=False, quant_type="nf4", blocksize=BLOCK, compress_statistics=False
    )
    layer = layer.to(ctx.device)
    return ctx.differentiable(
        layer, ctx.randn(32, 256), reference=lambda x: x @ _stored(ctx, weight, "nf4").t()
    )


@op("bnb.llm_int8", tolerance=3e-2, needs=NEEDS, spread=20.0)
def bnb_llm_int8(ctx: Context) -> Trial:
    """LLM.int8 product, against the product that was not quantised."""
    import bitsandbytes

    fp16 = ctx.torch.float16
    weight, tokens = ctx.randn(192, 256, dtype=fp16), ctx.randn(32, 256, dtype=fp16)
    layer = bitsandbytes.nn.Linear8bitLt(256, 192, bias=False, has_fp16_weights=False, threshold=6.0)
    layer.weight = bitsandbytes.nn.Int8Params(weight.cpu(), requires_grad=False, has_fp16_weights=False)
    layer = layer.to(ctx.device).eval()
    return Trial(lambda: layer(tokens).detach(), lambda: ctx.exact(tokens) @ ctx.exact(weight).t())


def _adam_steps(ctx: Context, optimizer_name: str) -> Trial:
    """Return a Trial of three steps of an Adam of bitsandbytes, on a weight large enough for 8-bit states."""
    import bitsandbytes

    torch = ctx.torch
    weight, *gradients = (ctx.randn(128, 128, dtype=torch.float32) for _ in range(4))

    def call() -> Any:
        parameter = torch.nn.Parameter(weight.clone())
        make = getattr(bitsandbytes.optim, optimizer_name)
        optimizer = make([parameter], lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
        for gradient in gradients:
            parameter.grad = gradient.clone()
            optimizer.step()
        return parameter.detach() - weight

    return Trial(call, lambda: adam_change([ctx.exact(gradient) for gradient in gradients]))


def adam_change(gradients: list[Any]) -> Any:
    """Return by how much Adam moves a weight that meets these gradients, by its definition."""
    mean, square, change = 0.0, 0.0, 0.0
    for step, gradient in enumerate(gradients, start=1):
        mean = BETAS[0] * mean + (1 - BETAS[0]) * gradient
        square = BETAS[1] * square + (1 - BETAS[1]) * gradient**2
        scale = (square / (1 - BETAS[1] ** step)) ** 0.5 + EPSILON
        change = change - RATE * (mean / (1 - BETAS[0] ** step)) / scale
    return change


@op("bnb.adamw8bit", tolerance=3e-2, needs=NEEDS, spread=50.0)
def bnb_adamw8bit(ctx: Context) -> Trial:
    """Three steps of 8-bit AdamW."""
    return _adam_steps(ctx, "AdamW8bit")


@op("bnb.paged_adamw", tolerance=1e-4, needs=NEEDS, cpu=False)
def bnb_paged_adamw(ctx: Context) -> Trial:
    """Three steps of paged AdamW (states in managed memory)."""
    return _adam_steps(ctx, "PagedAdamW32bit")
