"""Adapters beside a matrix product on the tape, as peft computes them: LoRA's and DoRA's."""

from __future__ import annotations

from envdoctor.memory.layout import Linear
from envdoctor.memory.settings import Settings
from envdoctor.memory.tape import Tape, Tensor


def as_computed(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    """The input in the dtype of the product: a copy of its own where autocast has to cast."""
    if s.autocast and x.width != s.compute:
        return tape.op(x.numel, s.compute, (x,))
    x.refs += 1
    return x


def dropout(tape: Tape, probability: float, x: Tensor) -> Tensor:
    """Drop elements: a new tensor and a mask of a byte an element; takes over the hold on `x`."""
    if probability <= 0:
        return x
    mask = tape.new(x.numel, 1)
    out = tape.op(x.numel, x.width, (x,), (mask,))
    tape.drop(mask, x)
    return out


def adapted(tape: Tape, s: Settings, x: Tensor, base: Tensor, matrix: Linear, quantised: bool) -> Tensor:
    """`base + B(A(dropout(x))) * scaling`; takes over the hold on `base`."""
    tokens = x.numel // matrix.inputs
    adapter = x
    cast = x.width != s.adapter and not (quantised and s.quant and s.autocast)
    if cast:
        adapter = tape.op(x.numel, s.adapter, (x,))
    else:
        adapter.refs += 1
    adapter.refs += 1
    dropped = dropout(tape, s.dropout, adapter)
    compute = s.compute if s.autocast else dropped.width
    held = _normed(tape, s, dropped, matrix, compute, quantised) if s.dora else ()
    given = as_computed(tape, s, dropped)
    low = _factor(tape, s, given, tokens * s.rank, s.rank * matrix.inputs, compute)
    tape.drop(given)
    if not s.dora:
        tape.drop(dropped)
    high = _factor(tape, s, low, tokens * matrix.outputs, s.rank * matrix.outputs, compute)
    tape.drop(low)
    if s.dora:
        scaled = _directed(tape, s, dropped, base, high, matrix)
    else:
        scaled = tape.op(high.numel, compute, (high,))
    tape.drop(high, *held)
    wide = max(base.width, scaled.width)
    if base.width < scaled.width == wide:  # the wider one's gradient is the sum's own
        seen = Tensor(base.numel, wide, base.needs)
        seen.size = 0
        tape.record(seen, (base,))
        out = tape.op(base.numel, wide, (seen, scaled), through=True)
    else:
        out = tape.op(base.numel, wide, (base, scaled), through=base.width == scaled.width)
    tape.drop(scaled, base, adapter)
    if out.width == base.width:
        return out
    narrow = tape.op(out.numel, base.width, (out,))
    tape.drop(out)
    return narrow


def _normed(
    tape: Tape, s: Settings, x: Tensor, matrix: Linear, compute: int, quantised: bool
) -> tuple[Tensor, ...]:
    """Take the norm of the adapted weight; returns what DoRA's code holds until it is done.

    The factors' product is made of a unit matrix, which autograd keeps as it was computed with; product and
    weight are brought to the width of `x`, scaled, and summed.
    https://github.com/huggingface/peft/blob/v0.21.2/src/peft/tuners/lora/dora.py
    """
    unit = tape.new(matrix.inputs**2, s.adapter)
    used = unit
    if compute != s.adapter:
        used = tape.new(matrix.inputs**2, compute)
    product = tape.new(matrix.weight, compute)
    if used is not unit:
        tape.drop(unit)
    change = _in_width(tape, product, x.width)
    stored = s.compute if quantised else s.weight
    if quantised:
        weight = _in_width(tape, tape.new(matrix.weight, stored), x.width)
    else:
        weight = tape.new(matrix.weight if stored != x.width else 0, x.width)
    tape.touch(change.size, change.size)
    return used, change, weight


def _in_width(tape: Tape, tensor: Tensor, width: int) -> Tensor:
    """The tensor in that width, in the place of it."""
    if tensor.width == width:
        return tensor
    other = tape.new(tensor.numel, width)
    tape.drop(tensor)
    return other


def _directed(tape: Tape, s: Settings, x: Tensor, base: Tensor, high: Tensor, matrix: Linear) -> Tensor:
    """`(m - 1) * base + m * high * scaling`, of which the magnitudes' gradient needs both factors.

    A bias is taken off the base first; with dropout it is a product of its own, by a copy of the weight.
    """
    if s.dropout > 0:
        given = as_computed(tape, s, x)
        copy = tape.new(matrix.weight if given is not x else 0, s.compute)
        plain = tape.op(base.numel, given.width, (given,), (copy,))
        tape.drop(given, copy)
    elif matrix.bias:
        plain = tape.op(base.numel, base.width, (base,), through=True)
    else:
        plain = base
        plain.refs += 1
    width = max(s.adapter, base.width)
    # gradients of both factors are made in the wider width, and brought to theirs one after the other
    scratch = width * base.numel, (width - base.width) * base.numel
    turned = tape.op(base.numel, width, (plain,), (plain,), scratch, matrix.outputs * s.adapter)
    grown = tape.op(high.numel, width, (high,), (high,), scratch)
    scaled = tape.op(high.numel, width, (grown,))
    tape.drop(grown)
    out = tape.op(base.numel, width, (turned, scaled), through=True)
    tape.drop(turned, scaled, plain, x)
    return out


def _factor(tape: Tape, s: Settings, x: Tensor, numel: int, weight: int, compute: int) -> Tensor:
    """One of an adapter's two products; autocast's copy of its weight is saved with the input."""
    cast = s.autocast and s.adapter != s.compute
    copy = tape.new(weight, s.compute) if cast else None
    saved = (x,) if copy is None else (x, copy)
    out = tape.op(numel, compute, (x,), saved, parameter=weight * s.adapter)
    if copy is not None:
        if tape.keep:
            tape.drop(copy)
        else:
            tape.cast(copy)
    return out


def scaled_by_vector(tape: Tape, s: Settings, x: Tensor, width: int, wide: bool) -> Tensor:
    """IA3: `x` times a trained vector, in the vector's width and back; `wide` casts `x` before.

    The caller keeps its hold on `x`. wheel:peft-0.21.2:peft/tuners/ia3/layer.py
    """
    given = x
    if wide and x.width < s.adapter:
        given = tape.op(x.numel, s.adapter, (x,))
    else:
        given.refs += 1
    vector = tape.new(width, s.adapter)
    # the vector's gradient is a product of the input's size before it is summed
    product = max(s.adapter, given.width)
    scratch = (product * x.numel, product * x.numel) if given.width < product else product * x.numel
    scaled = tape.op(
        x.numel, product, (given,), (given, vector), temporary=scratch, parameter=width * s.adapter
    )
    tape.drop(given, vector)
    if product == x.width:
        return scaled
    out = tape.op(x.numel, x.width, (scaled,))
    tape.drop(scaled)
    return out
