"""Norms on the tape, as the families' own code or Liger's kernels compute them."""

from __future__ import annotations

from envdoctor.memory.settings import Settings
from envdoctor.memory.tape import Tape, Tensor

LIGER_RMS = frozenset({"rms", "rms-offset", "rms-wide"})
WIDE = frozenset({"rms-offset", "rms-wide"})  # the weight is applied before the result is narrowed


def norm(tape: Tape, s: Settings, x: Tensor, kind: str, width: int) -> Tensor:
    """Normalise rows of `width` elements; the caller keeps its hold on `x`."""
    if s.fused_norm and kind in LIGER_RMS:
        return _liger(tape, s, x, width)
    if kind.startswith("layer"):
        out = _layer_norm(tape, s, x, width)
        if kind != "layer-plain" or out.width == x.width:
            return out
        narrow = tape.op(x.numel, x.width, (out,))  # OLMo's own code narrows it again
        tape.drop(out)
        return narrow
    return _rms(tape, s, x, width, wide=kind in WIDE)


def _rms(tape: Tape, s: Settings, x: Tensor, width: int, wide: bool) -> Tensor:
    rows = x.numel // width
    full = tape.op(x.numel, 4, (x,)) if x.width != 4 else x
    if full is x:
        x.refs += 1
    square = tape.op(x.numel, 4, (full,), (full,), temporary=(4 * x.numel, 4 * x.numel))
    inverse = tape.op(rows, 4, (square,), temporary=x.numel * 4)
    tape.drop(square)
    scaled = tape.op(x.numel, 4, (full, inverse), (full, inverse), temporary=x.numel * 4)
    tape.drop(full, inverse)
    trained = width * s.vector if s.trains else 0
    if wide:
        out = tape.op(x.numel, 4, (scaled,), (scaled,) if trained else (), 4 * x.numel, trained)
        tape.drop(scaled)
        if x.width == 4:
            return out
        narrow = tape.op(x.numel, x.width, (out,))
        tape.drop(out)
        return narrow
    narrow = scaled
    if x.width != 4:
        narrow = tape.op(x.numel, x.width, (scaled,))
    result = max(x.width, s.vector)
    out = tape.op(x.numel, result, (narrow,), (narrow,) if trained else (), result * x.numel, trained)
    tape.drop(narrow)
    if narrow is not scaled:  # a local name until the norm returns
        tape.drop(scaled)
    return out


def _layer_norm(tape: Tape, s: Settings, x: Tensor, width: int) -> Tensor:
    """Autocast runs it in fp32: the input is cast and the result stays fp32."""
    rows = x.numel // width
    full = tape.op(x.numel, 4, (x,)) if s.autocast and x.width != 4 else x
    if full is x:
        x.refs += 1
    statistics = tape.new(2 * rows, 4)
    trained = 2 * width * s.vector if s.trains else 0
    out = tape.op(x.numel, full.width, (full,), (full, statistics), 0, trained)
    tape.drop(full, statistics)
    return out


def _liger(tape: Tape, s: Settings, x: Tensor, width: int) -> Tensor:
    statistics = tape.new(x.numel // width, 4)
    trained = width * s.vector if s.trains else 0
    out = tape.op(x.numel, x.width, (x,), (x, statistics), 0, trained, through=True)
    tape.drop(statistics)
    return out
