"""axolotl's kernels for LoRA on the tape: whole blocks as one operation, of which only inputs are saved.

Factors are brought to the input's width and saved so; the gradients of gate and up are written over them.
What dropout leaves of the input is saved beside it. wheel:axolotl-0.21.0:axolotl/kernels/lora.py
"""

from __future__ import annotations

from envdoctor.memory.adapted import dropout
from envdoctor.memory.layout import Linear
from envdoctor.memory.settings import Settings
from envdoctor.memory.tape import Tape, Tensor


def fused(s: Settings, matrices: tuple[Linear, ...]) -> bool:
    """True where the kernels take these linears: each with LoRA's plain factors."""
    return s.kernels and not s.dora and all(s.targeted(matrix.role) for matrix in matrices)


def fused_mlp(tape: Tape, s: Settings, x: Tensor, matrices: tuple[Linear, ...]) -> Tensor:
    """A feed-forward block: input, gate and up are saved; on the way back one more of their size is made."""
    tokens = x.numel // matrices[0].inputs
    dropped = _dropped(tape, s, x)
    factors = _factors(tape, s, x, matrices)
    gate, up = (_product(tape, s, tokens, matrix) for matrix in matrices[:2])
    inner = tape.new(gate.numel, gate.width)
    _unpack(tape, s, matrices[2])
    scratch = (gate.size, _largest(s, matrices))
    out = tape.op(
        tokens * matrices[2].outputs, s.compute, (x, *dropped), (x, *dropped, gate, up, factors), scratch,
        _trained(s, matrices),
    )  # fmt: skip
    tape.drop(inner, gate, up, factors, *dropped)
    return out


def fused_linears(tape: Tape, s: Settings, x: Tensor, matrices: tuple[Linear, ...]) -> tuple[Tensor, ...]:
    """Linears of one input, whose gradients are summed in place: the first of them makes it."""
    tokens = x.numel // matrices[0].inputs
    dropped = _dropped(tape, s, x)
    factors = _factors(tape, s, x, matrices)
    given: tuple[Tensor, ...] = (x, *dropped)
    saved: tuple[Tensor, ...] = (*given, factors)
    scratch: tuple[int, ...] = (_largest(s, matrices),)
    found = []
    for matrix in matrices:
        _unpack(tape, s, matrix)
        numel, trained = tokens * matrix.outputs, _trained(s, (matrix,))
        found.append(tape.op(numel, s.compute, given, saved, scratch, trained))
        given, saved, scratch = (), (), ()
    tape.drop(factors, *dropped)
    return tuple(found)


def _dropped(tape: Tape, s: Settings, x: Tensor) -> tuple[Tensor, ...]:
    """What dropout leaves of the input for the factors of all these linears, where there is any."""
    if not s.dropout:
        return ()
    x.refs += 1
    return (dropout(tape, s.dropout, x),)


def _product(tape: Tape, s: Settings, tokens: int, matrix: Linear) -> Tensor:
    _unpack(tape, s, matrix)
    return tape.new(tokens * matrix.outputs, s.compute)


def _unpack(tape: Tape, s: Settings, matrix: Linear) -> None:
    if s.quant:
        tape.touch(matrix.weight * s.compute)


def _largest(s: Settings, matrices: tuple[Linear, ...]) -> int:
    """Bytes of the largest matrix while it is unpacked."""
    return max(matrix.weight for matrix in matrices) * s.compute if s.quant else 0


def _factors(tape: Tape, s: Settings, x: Tensor, matrices: tuple[Linear, ...]) -> Tensor:
    """Copies of all factors in the input's width, where theirs is another."""
    size = sum(s.rank * (matrix.inputs + matrix.outputs) for matrix in matrices)
    return tape.new(size if s.adapter != x.width else 0, x.width)


def _trained(s: Settings, matrices: tuple[Linear, ...]) -> int:
    return sum(s.rank * (matrix.inputs + matrix.outputs) for matrix in matrices) * s.adapter
