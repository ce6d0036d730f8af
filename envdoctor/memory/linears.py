"""Matrix products on the tape: plain, cast by autocast, quantised, and with an adapter beside them."""

from __future__ import annotations

from envdoctor.memory.adapted import adapted, as_computed, scaled_by_vector
from envdoctor.memory.layout import Linear
from envdoctor.memory.settings import Settings
from envdoctor.memory.tape import Tape, Tensor

CASTING = 9
"""Bytes an element at the height of a cast to 8 bits: two copies in fp32 and the result."""


def linear(tape: Tape, s: Settings, x: Tensor, matrix: Linear, outer: bool = False) -> Tensor:
    """Apply a linear and its adapter; the caller keeps its hold on `x`.

    `outer` says that it lies outside the quantised and adapted layers, as the head does.
    """
    quantised = bool(s.quant) and not outer
    if not outer and matrix.role in s.fed:
        scaled = scaled_by_vector(tape, s, x, matrix.inputs, wide=True)
        out = _plain(tape, s, scaled, matrix, outer)
        tape.drop(scaled)
        return out
    base = _quantised(tape, s, x, matrix) if quantised else _plain(tape, s, x, matrix, outer)
    if not outer and matrix.role in s.scaled:
        scaled = scaled_by_vector(tape, s, base, matrix.outputs, wide=False)
        tape.drop(base)
        return scaled
    if outer or not s.targeted(matrix.role):
        return base
    if quantised and s.quant == "nf4":  # peft clones the result of a 4-bit product
        copy = tape.op(base.numel, base.width, (base,), through=True)
        tape.drop(base)
        base = copy
    return adapted(tape, s, x, base, matrix, quantised)


def _plain(tape: Tape, s: Settings, x: Tensor, matrix: Linear, outer: bool) -> Tensor:
    weight = s.vector if outer else s.weight
    outputs = matrix.outputs // s.tp if matrix.role not in ("o", "down") else matrix.outputs
    inputs = matrix.inputs // s.tp if matrix.role in ("o", "down") else matrix.inputs
    tokens = x.numel // inputs
    given = as_computed(tape, s, x)
    if s.eight and not outer:
        return _in_eight_bits(tape, s, given, inputs * outputs, tokens * outputs, matrix.bias)
    trains = s.trains_head if outer else s.trains
    trained = (inputs * outputs + (outputs if matrix.bias else 0)) * weight if trains else 0
    copy = None
    if s.autocast and weight != s.compute:  # its gradient comes in the product's dtype and is cast in turn
        copy = tape.op(inputs * outputs, s.compute, (), parameter=trained)
        trained = 0
    saved: tuple[Tensor, ...] = (given,) if trains or s.keeps_inputs else ()
    if copy is not None and x.needs:
        saved = (*saved, copy)
    out = tape.op(
        tokens * outputs,
        s.compute if s.autocast else x.width,
        (given,) if copy is None else (copy, given),
        saved,
        parameter=trained,
    )
    if copy is not None:
        _release_cast(tape, trains or (s.unfrozen and not outer), copy)
    tape.drop(given)
    return out


def _in_eight_bits(tape: Tape, s: Settings, x: Tensor, weight: int, results: int, bias: bool) -> Tensor:
    """torchao's product in FP8, as it runs without torch.compile; takes over the hold on `x`.

    The input is saved as it came, and both factors are cast anew in each direction, by way of fp32. The
    weight's gradient is computed though nobody asks for it.
    wheel:torchao-0.18.0-cp310-abi3-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl:torchao/float8/float8_linear.py
    """
    low = [_cast_low(tape, numel, width) for numel, width in ((x.numel, x.width), (weight, s.weight))]
    trained = weight * s.weight if s.trains else 0
    left = 2 * x.numel  # the input's gradient
    heights = (
        CASTING * results,
        results + CASTING * weight,
        results + weight + left + CASTING * results,
        2 * results + weight + left + CASTING * x.numel,
        3 * results + weight + left + 2 * x.numel + 2 * weight,
    )
    rest = max(0, max(heights) - left - trained)
    out = tape.op(results, s.compute, (x,), (x,), (rest // 2, rest - rest // 2), trained)
    tape.drop(*low, x)
    if bias:
        summed = tape.op(results, s.compute, (out,), through=True)
        tape.drop(out)
        return summed
    return out


def _cast_low(tape: Tape, numel: int, width: int) -> Tensor:
    """Scale a tensor and cast it to 8 bits: its magnitudes, then it in fp32, scaled, and cut off."""
    tape.touch(numel * width)
    wide, scaled = tape.new(numel, 4), tape.new(numel, 4)
    tape.drop(wide)
    cut = tape.new(numel, 4)
    low = tape.new(numel, 1)
    tape.drop(cut, scaled)
    return low


def _release_cast(tape: Tape, stays: bool, copy: Tensor) -> None:
    """Autocast keeps the cast copies of weights that ask for gradients until the forward pass leaves it."""
    if stays and not tape.keep:
        tape.cast(copy)
    else:
        tape.drop(copy)


def _quantised(tape: Tape, s: Settings, x: Tensor, matrix: Linear) -> Tensor:
    tokens = x.numel // matrix.inputs
    if s.quant == "int8":
        half = tape.new(x.numel, 2)
        eighth = tape.new(x.numel, 1)
        out = tape.op(tokens * matrix.outputs, x.width, (x,), (x,), temporary=matrix.weight * 3)
        tape.drop(half, eighth)
        tape.pin(x)  # bitsandbytes keeps it as an attribute, which no checkpoint drops
        return out
    given = tape.op(x.numel, s.compute, (x,)) if x.width != s.compute else x
    unpacked = tape.new(matrix.weight, s.compute)
    raw = tape.op(tokens * matrix.outputs, s.compute, (given,), temporary=matrix.weight * s.compute)
    tape.drop(unpacked)
    if given is x:
        return raw
    tape.drop(given)
    out = tape.op(raw.numel, x.width, (raw,))
    tape.drop(raw)
    return out
