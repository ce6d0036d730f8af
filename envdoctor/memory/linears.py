"""Matrix products on the tape: plain, cast by autocast, quantised, and with an adapter beside them."""

from __future__ import annotations

from envdoctor.memory.layout import Linear
from envdoctor.memory.settings import Settings
from envdoctor.memory.tape import Tape, Tensor


def linear(tape: Tape, s: Settings, x: Tensor, matrix: Linear, outer: bool = False) -> Tensor:
    """Apply a linear and its adapter; the caller keeps its hold on `x`.

    `outer` says that it lies outside the quantised and adapted layers, as the head does.
    """
    quantised = bool(s.quant) and not outer
    base = _quantised(tape, s, x, matrix) if quantised else _plain(tape, s, x, matrix, outer)
    if outer or not s.targeted(matrix.role):
        return base
    if quantised and s.quant == "nf4":  # peft clones the result of a 4-bit product
        copy = tape.op(base.numel, base.width, (base,), through=True)
        tape.drop(base)
        base = copy
    return _adapted(tape, s, x, base, matrix, quantised)


def _plain(tape: Tape, s: Settings, x: Tensor, matrix: Linear, outer: bool) -> Tensor:
    weight = s.vector if outer and s.quant else s.weight
    outputs = matrix.outputs // s.tp if matrix.role not in ("o", "down") else matrix.outputs
    inputs = matrix.inputs // s.tp if matrix.role in ("o", "down") else matrix.inputs
    tokens = x.numel // inputs
    given = _as_computed(tape, s, x)
    trained = _parameter(s, inputs, outputs, matrix.bias, weight)
    copy = None
    if s.autocast and weight != s.compute:  # its gradient comes in the product's dtype and is cast in turn
        copy = tape.op(inputs * outputs, s.compute, (), parameter=trained)
        trained = 0
    saved: tuple[Tensor, ...] = (given,) if s.trains or s.keeps_inputs else ()
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
        _release_cast(tape, s, copy)
    tape.drop(given)
    return out


def _parameter(s: Settings, inputs: int, outputs: int, bias: bool, weight: int) -> int:
    return (inputs * outputs + (outputs if bias else 0)) * weight if s.trains else 0


def _release_cast(tape: Tape, s: Settings, copy: Tensor) -> None:
    """Autocast keeps the cast copies of trained weights until the forward pass leaves it."""
    if s.trains and not tape.keep:
        tape.cast(copy)
    else:
        tape.drop(copy)


def _as_computed(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    """The input in the dtype of the product: a copy of its own where autocast has to cast."""
    if s.autocast and x.width != s.compute:
        return tape.op(x.numel, s.compute, (x,))
    x.refs += 1
    return x


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
    tape.touch(matrix.weight * s.compute + tokens * matrix.outputs * s.compute)
    if given is x:
        return tape.op(tokens * matrix.outputs, s.compute, (x,), temporary=matrix.weight * s.compute)
    raw = tape.op(tokens * matrix.outputs, s.compute, (given,), temporary=matrix.weight * s.compute)
    tape.drop(given)
    out = tape.op(raw.numel, x.width, (raw,))
    tape.drop(raw)
    return out


def _adapted(tape: Tape, s: Settings, x: Tensor, base: Tensor, matrix: Linear, quantised: bool) -> Tensor:
    """`base + B(A(dropout(x))) * scaling` as peft computes it."""
    tokens = x.numel // matrix.inputs
    adapter = x
    cast = x.width != s.adapter and not (quantised and s.quant and s.autocast)
    if cast:
        adapter = tape.op(x.numel, s.adapter, (x,))
    else:
        adapter.refs += 1
    dropped = adapter
    if s.dropout > 0:
        mask = tape.new(x.numel, 1)
        dropped = tape.op(x.numel, adapter.width, (adapter,), (mask,))
        tape.drop(mask)
    else:
        dropped.refs += 1
    given = _as_computed(tape, s, dropped)
    compute = s.compute if s.autocast else dropped.width
    low = _factor(tape, s, given, tokens * s.rank, s.rank * matrix.inputs, compute)
    tape.drop(given, dropped)
    high = _factor(tape, s, low, tokens * matrix.outputs, s.rank * matrix.outputs, compute)
    tape.drop(low)
    scaled = tape.op(high.numel, compute, (high,))
    tape.drop(high)
    out = tape.op(base.numel, max(base.width, compute), (base, scaled), through=base.width == compute)
    tape.drop(scaled, base, adapter)
    if out.width == base.width:
        return out
    narrow = tape.op(out.numel, base.width, (out,))
    tape.drop(out)
    return narrow


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
