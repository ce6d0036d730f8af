"""Feed-forward blocks and whole decoder layers on the tape."""

from __future__ import annotations

from envdoctor.memory.adapted import dropout
from envdoctor.memory.adapters import adapts_experts, expert_factors
from envdoctor.memory.attention import attention
from envdoctor.memory.kernels import fused, fused_mlp
from envdoctor.memory.layout import Linear, mlp_linears
from envdoctor.memory.linears import linear
from envdoctor.memory.norms import norm
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import Experts, ModelShape
from envdoctor.memory.tape import Tape, Tensor


def decoder_layer(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, moe: bool, windowed: bool) -> Tensor:
    """Run a layer on `x`, whose hold passes to the layer; returns the new residual stream.

    The loop over the layers holds `x` until the layer returns.
    """
    if shape.parallel:
        return _parallel_layer(tape, s, shape, x, windowed)
    middle = _residual(tape, s, shape, x, lambda h: attention(tape, s, shape, h, windowed))
    out = _residual(tape, s, shape, middle, lambda h: _feed_forward(tape, s, shape, h, moe))
    tape.drop(middle, x)
    return out


def _residual(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, block: object) -> Tensor:
    """`x + post_norm(block(pre_norm(x)))`."""
    assert callable(block)
    if shape.pre_norm:
        normed = norm(tape, s, x, shape.norm, shape.hidden)
    else:
        normed = x
        x.refs += 1
    result = block(normed)
    tape.drop(normed)
    if shape.post_norms:
        post = norm(tape, s, result, shape.norm, shape.hidden)
        tape.drop(result)
        result = post
    result = dropout(tape, shape.hidden_dropout, result)
    out = add(tape, x, result)
    tape.drop(result)
    return out


def add(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    """Add two tensors, in the wider dtype."""
    return tape.op(a.numel, max(a.width, b.width), (a, b), through=a.width == b.width)


def _parallel_layer(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, windowed: bool) -> Tensor:
    """Attention and feed-forward side by side, on one norm's result or on two."""
    first = norm(tape, s, x, shape.norm, shape.hidden)
    if shape.norms > 1 and shape.model_type == "falcon":
        second = norm(tape, s, x, shape.norm, shape.hidden)
    else:
        second = first
        second.refs += 1
    attended = dropout(tape, shape.hidden_dropout, attention(tape, s, shape, first, windowed))
    tape.drop(first)
    if shape.norms > 1 and shape.model_type != "falcon":
        tape.drop(second)
        second = norm(tape, s, x, shape.norm, shape.hidden)
    fed = dropout(tape, shape.hidden_dropout, _dense(tape, s, shape, second, mlp_linears(shape, shape.ffn)))
    tape.drop(second)
    both = add(tape, fed, attended)
    tape.drop(fed, attended)
    out = add(tape, both, x)
    tape.drop(both, x)
    return out


def _feed_forward(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, moe: bool) -> Tensor:
    if moe and shape.experts:
        return _experts(tape, s, shape, x, shape.experts)
    return _dense(tape, s, shape, x, mlp_linears(shape, shape.ffn))


def _dense(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, matrices: tuple[Linear, ...]) -> Tensor:
    if len(matrices) == 3 and fused(s, matrices):
        return fused_mlp(tape, s, x, matrices)
    if len(matrices) == 3:
        gate = linear(tape, s, x, matrices[0])
        if s.liger:
            product = _liger_gate(tape, gate, linear(tape, s, x, matrices[1]))
        else:
            active = activate(tape, s, shape.activation, gate)
            product = _multiplied(tape, active, linear(tape, s, x, matrices[1]))
    elif shape.fused_gate_up:
        product = _fused_gate(tape, s, shape, linear(tape, s, x, matrices[0]))
    else:
        product = activate(tape, s, shape.activation, linear(tape, s, x, matrices[0]))
    out = linear(tape, s, product, matrices[-1])
    tape.drop(product)
    return out


def _multiplied(tape: Tape, a: Tensor, b: Tensor) -> Tensor:
    out = tape.op(a.numel, max(a.width, b.width), (a, b), (a, b))
    tape.drop(a, b)
    return out


def _liger_gate(tape: Tape, gate: Tensor, up: Tensor) -> Tensor:
    """Liger's kernel saves its two inputs and writes their gradients over them."""
    out = tape.op(gate.numel, gate.width, (gate, up), (gate, up))
    tape.overwrites()
    tape.drop(gate, up)
    return out


def _fused_gate(tape: Tape, s: Settings, shape: ModelShape, whole: Tensor) -> Tensor:
    """Two views of one tensor: the gradients of both halves are joined into one again."""
    gate, up = tape.halves(whole)
    active = tape.op(gate.numel, gate.width, (gate,), (whole,))
    out = tape.op(up.numel, up.width, (up, active), (whole, active))
    tape.drop(whole, active)
    return out


def activate(tape: Tape, s: Settings, kind: str, x: Tensor) -> Tensor:
    """Apply the activation of that kind: its input is saved; takes over the hold on `x`."""
    if kind == "relu2":
        out = _squared_relu(tape, s, x)
    elif kind == "relu":  # saves its result instead
        out = tape.op(x.numel, x.width, (x,))
        tape.save_result(out)
    elif kind == "gelu_tanh_composed":
        out = _composed_gelu(tape, s, x)
    elif kind == "quick_gelu":
        out = _quick_gelu(tape, x)
    else:
        out = tape.op(x.numel, x.width, (x,), (x,))
    tape.drop(x)
    return out


def _squared_relu(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    """`relu(x) ** 2`: autocast takes the power in fp32."""
    base = tape.op(x.numel, x.width, (x,))
    tape.save_result(base)
    width = 4 if s.autocast else x.width
    wide = tape.op(x.numel, width, (base,)) if width != x.width else base
    out = tape.op(x.numel, width, (wide,), (wide,), temporary=(x.numel * width,) * 2)
    tape.drop(*((base, wide) if wide is not base else (base,)))
    return out


def _quick_gelu(tape: Tape, x: Tensor) -> Tensor:
    """`x * sigmoid(1.702 * x)` written out in Python."""
    scaled = tape.op(x.numel, x.width, (x,))
    gate = tape.op(x.numel, x.width, (scaled,))
    tape.save_result(gate)
    tape.drop(scaled)
    out = tape.op(x.numel, x.width, (x, gate), (x, gate))
    tape.drop(gate)
    return out


def _composed_gelu(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    """`0.5 * x * (1 + tanh(c * (x + a * x**3)))` written out in Python: autocast takes the power in fp32."""
    width = 4 if s.autocast else x.width
    base = tape.op(x.numel, width, (x,)) if width != x.width else x
    if base is x:
        x.refs += 1
    cube = tape.op(x.numel, width, (base,), (base,), temporary=(x.numel * width,) * 2)
    inner = tape.op(x.numel, width, (x, cube))
    tape.drop(base, cube)
    curve = tape.op(x.numel, width, (inner,), (), temporary=x.numel * width)
    tape.drop(inner)
    tape.save_result(curve)
    raised = tape.op(x.numel, width, (curve,), through=True)
    tape.drop(curve)
    half = tape.op(x.numel, x.width, (x,))
    out = tape.op(x.numel, width, (half, raised), (half, raised))
    tape.drop(half, raised)
    return out


def _grouped(
    tape: Tape, s: Settings, x: Tensor, numel: int, elements: int, grads: int, factors: int
) -> Tensor:
    """One product by all experts; takes over the hold on `x`. peft adds its factors to the stack first."""
    if not factors:
        out = tape.op(numel, s.compute, (x,), (x,) if s.trains else (), 0, grads)
        tape.drop(x)
        return out
    low = tape.op(factors, s.compute, (), (), 0, factors * s.adapter)
    adapted = tape.op(elements, s.compute, (low,), (low,))
    tape.drop(low)
    out = tape.op(numel, s.compute, (x, adapted), (x, adapted))
    tape.drop(x, adapted)
    return out


def _experts(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, experts: Experts) -> Tensor:
    """Routed experts by grouped products: rows gathered, two products, rows weighted and summed."""
    rows = s.tokens * experts.active
    elements = experts.count * shape.hidden * experts.width
    stack = elements * s.weight
    factors = expert_factors(shape, experts, s.rank) if adapts_experts(shape, s) else (0,) * 6
    logits = tape.op(s.tokens * experts.count, 4, (x,), (x,), temporary=0, parameter=0)
    tape.touch(2 * logits.size)
    gathered = tape.op(rows * shape.hidden, s.compute, (x,))
    grads = stack if s.trains else 0
    both = _grouped(tape, s, gathered, rows * 2 * experts.width, 2 * elements, 2 * grads, sum(factors[:2]))
    product = _fused_gate(tape, s, shape, both)
    result = _grouped(tape, s, product, rows * shape.hidden, elements, grads, sum(factors[2:4]))
    weighted = tape.op(
        rows * shape.hidden, 4 if s.autocast else s.compute, (result, logits), (result, logits)
    )
    tape.drop(result)
    ordered = tape.op(weighted.numel, weighted.width, (weighted,))
    tape.drop(weighted)
    out = tape.op(x.numel, x.width, (ordered,))
    tape.drop(ordered, logits)
    if not experts.shared_width:
        return out
    shared = _dense(tape, s, shape, x, mlp_linears(shape, experts.shared_width, "shared_"))
    total = add(tape, out, shared)
    tape.drop(out, shared)
    return total
