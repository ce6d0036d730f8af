"""Towers that read images, on the tape: patches embedded, blocks of both directions, the way to the decoder.

As the modelling files of transformers 5.17 compute them under autocast.
"""

from __future__ import annotations

from collections.abc import Callable

from envdoctor.memory.attention import turned
from envdoctor.memory.blocks import activate, add, decoder_layer
from envdoctor.memory.layout import block_linears, ending_linears
from envdoctor.memory.linears import linear
from envdoctor.memory.norms import norm
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import Tape, Tensor
from envdoctor.memory.vision import Vision

HEAD_STEP = 32
"""Widths of heads that the flash kernel's backward pass sums in."""


def run_layer(
    tape: Tape, s: Settings, shape: ModelShape | Vision, x: Tensor, moe: bool, windowed: bool
) -> Tensor:
    """Run a layer of a decoder, or a tower's block."""
    if isinstance(shape, Vision):
        return tower_block(tape, s, shape, x)
    return decoder_layer(tape, s, shape, x, moe, windowed)


def tower_block(tape: Tape, s: Settings, v: Vision, x: Tensor) -> Tensor:
    """Run a block on `x`, whose hold passes to it; the loop over the blocks holds `x` until it returns."""
    middle, attended = _residual(tape, s, v, x, lambda h: _attention(tape, s, v, h))
    if not v.scaled:  # there a name of its own holds what attention gave
        tape.drop(attended)
    out, fed = _residual(tape, s, v, middle, lambda h: _feed_forward(tape, s, v, h))
    tape.drop(*((attended, fed) if v.scaled else (fed,)), middle, x)
    return out


def _residual(
    tape: Tape, s: Settings, v: Vision, x: Tensor, part: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """`x + part(norm(x))`, and what was added."""
    normed = norm(tape, s, x, v.norm, v.hidden)
    result = part(normed)
    tape.drop(normed)
    if v.scaled:
        trained = v.hidden * s.vector if s.trains else 0
        wide = max(result.width, s.vector)
        grown = tape.op(
            result.numel, wide, (result,), (result,) if trained else (), result.numel * wide, trained
        )
        tape.drop(result)
        result = grown
    return add(tape, x, result), result


def _attention(tape: Tape, s: Settings, v: Vision, x: Tensor) -> Tensor:
    matrices = block_linears(v)
    if v.fused:
        whole = linear(tape, s, x, matrices[0])
        views = tape.parts(whole, 3)
        query, key = _widely_turned(tape, s, views[0], views[1])
        context = _kernel(tape, s, v, (query, key, views[2]), (query, key, whole))
        joined = tape.op(context.numel, context.width, (context,))  # images and windows one after the other
        tape.drop(context, whole)
        context = joined
    else:
        query, key, value = (linear(tape, s, x, m) for m in matrices[:3])
        if v.rope:
            both = tuple(turned(tape, t, t.numel, max(t.width, s.stream)) for t in (query, key))
            tape.drop(query, key)
            query, key = (_narrowed(tape, s, t) for t in both)
        context = _kernel(tape, s, v, (query, key, value), (query, key, value))
        tape.drop(value)
    tape.drop(query, key)
    out = linear(tape, s, context, matrices[3 if not v.fused else 1])
    tape.drop(context)
    return out


def _narrowed(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    if x.width == s.compute or not s.autocast:
        return x
    out = tape.op(x.numel, s.compute, (x,))
    tape.drop(x)
    return out


def _widely_turned(tape: Tape, s: Settings, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Query and key turned in fp32: copies of both stay until the rotation returns."""
    wide = [tape.op(t.numel, 4, (t,)) for t in (query, key)]
    results = [turned(tape, t, t.numel, 4) for t in wide]
    narrow = []
    for result in results:
        narrow.append(tape.op(result.numel, s.compute, (result,)))
        tape.drop(result)
    tape.drop(*wide)
    return narrow[0], narrow[1]


def _kernel(
    tape: Tape, s: Settings, v: Vision, inputs: tuple[Tensor, ...], saved: tuple[Tensor, ...]
) -> Tensor:
    """torch's flash kernel, or the memory-efficient one under a mask."""
    rows, count = s.tokens, s.tokens * v.hidden
    sums = tape.new(rows * v.heads, 4)
    width = -(-v.head_dim // HEAD_STEP) * HEAD_STEP
    scratch = 2 * 2 * count if v.masked else 4 * rows * v.heads * width + 4 * rows * v.heads
    out = tape.op(count, s.compute, inputs, (*saved, sums), temporary=scratch)
    tape.save_result(out)
    tape.drop(sums)
    return out


def _feed_forward(tape: Tape, s: Settings, v: Vision, x: Tensor) -> Tensor:
    first, *rest = block_linears(v)[-3 if v.gated else -2 :]
    product = activate(tape, s, v.activation, linear(tape, s, x, first))
    if v.gated:
        other = linear(tape, s, x, rest[0])
        both = tape.op(product.numel, product.width, (product, other), (product, other))
        tape.drop(product, other)
        product = both
    out = linear(tape, s, product, rest[-1])
    tape.drop(product)
    return out


def tower_ending(tape: Tape, s: Settings, v: Vision, x: Tensor, tokens: int) -> Tensor:
    """What follows the blocks: returns the decoder's `tokens`; takes over the hold on `x`."""
    if v.normed:
        after = norm(tape, s, x, "layer", v.hidden)
        tape.drop(x)
        x = after
    if v.ending == "pooled":
        return _pooled(tape, s, v, x, tokens)
    if v.ending in ("merger", "merged-two"):
        x = _replaced(tape, x, norm(tape, s, x, v.norm, v.hidden))
    if v.ending.startswith("shuffled") or v.ending == "merged-two":
        x = _replaced(tape, x, tape.op(x.numel, x.width, (x,)))
    if v.ending == "shuffled-two":
        x = _replaced(tape, x, norm(tape, s, x, "layer", v.hidden * v.merge**2))
    matrices = ending_linears(v)
    for place, matrix in enumerate(matrices):
        x = _replaced(tape, x, linear(tape, s, x, matrix))
        if place == len(matrices) - 2:
            x = activate(tape, s, "gelu", x)
    return x


def _replaced(tape: Tape, old: Tensor, new: Tensor) -> Tensor:
    tape.drop(old)
    return new


def _pooled(tape: Tape, s: Settings, v: Vision, x: Tensor, tokens: int) -> Tensor:
    """Gemma 3's: patches averaged into a fixed number of tokens, a norm, a product with a plain parameter."""
    ordered = _replaced(tape, x, tape.op(x.numel, x.width, (x,)))
    pooled = tape.op(tokens * v.hidden, x.width, (ordered,), (ordered,))
    tape.drop(ordered)
    normed = _replaced(tape, pooled, norm(tape, s, pooled, "rms-offset", v.hidden))
    low = tape.op(normed.numel, s.compute, (normed,)) if normed.width != s.compute else normed
    if low is not normed:
        tape.drop(normed)
    trained = v.hidden * v.outputs * s.vector if s.trains else 0
    out = tape.op(tokens * v.outputs, s.compute, (low,), (low,) if trained else (), parameter=trained)
    tape.drop(low)
    return out
