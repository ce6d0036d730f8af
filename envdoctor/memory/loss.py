"""Final norm, head and loss: the logits in every form they take, plain or with Liger's fused loss."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from envdoctor.memory.layout import Linear
from envdoctor.memory.linears import linear
from envdoctor.memory.norms import norm
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import Tape, rounded


class LossCost(NamedTuple):
    """Bytes that head and loss keep, their heights in both directions, and the head's gradient."""

    kept: int
    forward: int
    backward: int
    grads: int
    logits: int


@lru_cache(maxsize=4096)
def loss_cost(shape: ModelShape, s: Settings, accumulating: bool, upcast: bool = True) -> LossCost:
    """Return the cost of everything after the last layer."""
    if s.liger:
        return _liger(shape, s, accumulating)
    tape = Tape(accumulating=accumulating)
    x = tape.new(s.tokens * shape.hidden, s.stream, needs=True)
    start = tape.live
    hidden = norm(tape, s, x, shape.norm, shape.hidden)
    tape.drop(x)
    head = Linear("head", shape.hidden, shape.vocab // s.tp, shape.head_bias)
    logits = linear(tape, s, hidden, head, outer=True)
    tape.drop(hidden)
    if shape.softcap:
        for saves in (False, True, False):
            capped = tape.op(logits.numel, logits.width, (logits,))
            if saves:
                node = tape.nodes[-1]
                node.saved = (capped,)
                capped.refs += 1
            tape.drop(logits)
            logits = capped
    full = tape.op(logits.numel, 4, (logits,)) if upcast and logits.width != 4 else logits
    if full is logits:
        logits.refs += 1
    picked = tape.op(logits.numel, 4, (full,))
    node = tape.nodes[-1]
    node.saved = (picked,)
    picked.refs += 1
    tape.drop(full)
    loss = tape.op(1, 4, (picked,))
    tape.drop(picked)
    if s.autocast:  # accelerate hands the outputs back in fp32
        tape.touch(logits.numel * 4)
    tape.drop(logits, loss)
    forward, kept = tape.peak - start, tape.live - start
    before = tape.live
    tape.peak = 0
    tape.backward(loss)
    size = rounded(s.tokens * shape.vocab // s.tp * 4)
    return LossCost(kept, forward, tape.peak - before, tape.grads, 3 * size)


def _liger(shape: ModelShape, s: Settings, accumulating: bool) -> LossCost:
    """Liger computes the loss in chunks and the gradients already in the forward pass."""
    vocab, hidden, tokens = shape.vocab // s.tp, shape.hidden, s.tokens
    parts = -(-vocab // hidden)
    chunk = 1 << max(0, (-(-tokens // parts) - 1).bit_length())
    chunk = min(chunk, tokens)
    weight = rounded(vocab * hidden * s.weight) if s.trains else 0
    stream = rounded(tokens * hidden * s.stream)
    kept = (
        rounded(tokens * hidden * s.compute) + weight + stream
    )  # input gradient, weight's, the norm's input
    logits = rounded(chunk * vocab * s.compute)
    if s.autocast and s.vector != s.compute:  # the head's cast copy, and the chunk's gradients in fp32
        logits += rounded(vocab * hidden * s.compute)
    return LossCost(kept, kept + stream + logits, 2 * stream, weight, logits)
