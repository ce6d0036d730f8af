"""Attention blocks on the tape: projections, rotary embedding, and the kernel by its kind."""

from __future__ import annotations

from envdoctor.memory.kernels import fused, fused_linears
from envdoctor.memory.layout import Linear, attention_linears
from envdoctor.memory.linears import linear
from envdoctor.memory.norms import norm
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import LatentAttention, ModelShape
from envdoctor.memory.tape import Tape, Tensor

FLASH_HEAD_DIM = 256  # the widest head that torch's flash kernel takes


def attention(tape: Tape, s: Settings, shape: ModelShape, x: Tensor, windowed: bool) -> Tensor:
    """Run an attention block on `x`, which the caller keeps; returns the output projection's result."""
    matrices = {m.role: m for m in attention_linears(shape)}
    if shape.latent:
        query, key, value = _latent_projections(tape, s, shape, shape.latent, x, matrices)
    else:
        query, key, value = _projections(tape, s, shape, x, matrices)
    query, key, value = _lowered(tape, s, query), _lowered(tape, s, key), _lowered(tape, s, value)
    if s.sp > 1:
        query, key, value = (_exchanged(tape, x) for x in (query, key, value))
    if s.cp > 1:  # one after the other, and their gradients on the way back
        tape.touch(s.cp * key.size, s.cp * value.size)
    if s.prefix:
        key, value = _prefixed(tape, s, key), _prefixed(tape, s, value)
    wide = s.attn == "sdpa" and (
        s.packed or s.padded or s.masked or s.prefix > 0 or (windowed and s.seq >= shape.window > 0)
    )  # flash-attn needs no mask
    if s.attn == "eager" or shape.alibi:
        context = _eager(tape, s, shape, query, key, value)
    elif shape.model_type == "falcon" and _key_heads(shape) < shape.heads:
        context = _math(tape, s, shape, query, key, value)  # one key head, broadcast: no kernel takes that
    elif wide or _has_math_only(s, shape, query):
        context = _masked(tape, s, shape, query, key, value, wide)
    else:
        context = _flash(tape, s, shape, query, key, value)
    if s.sp > 1:
        context = _exchanged(tape, context)
    if shape.rope and (shape.rotary_share < 1 or shape.fused_qkv or shape.latent) and s.attn != "eager":
        ordered = tape.op(
            context.numel, context.width, (context,)
        )  # a joined query leaves heads before tokens
        tape.drop(context)
        context = ordered
    tape.drop(query, key, value)
    last = matrices["o"]
    if fused(s, (last,)):
        (out,) = fused_linears(tape, s, context, (last,))
    else:
        out = linear(tape, s, context, last)
    tape.drop(context)
    return out


def _exchanged(tape: Tape, x: Tensor) -> Tensor:
    """Ulysses: some heads of all cards' tokens for all heads of some; what is sent is laid out in a copy."""
    tape.touch(x.size)
    out = tape.op(x.numel, x.width, (x,), temporary=x.size)
    tape.drop(x)
    return out


def _prefixed(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    """Keys or values behind those of the trained tokens; the cache holds them until the backward pass."""
    out = tape.op(x.numel // s.seq * (s.seq + s.prefix), x.width, (x,))
    tape.save_result(out)
    tape.drop(x)
    return out


def masks(shape: ModelShape, s: Settings) -> int:
    """How many masks of a byte for each pair of tokens a batch has under sdpa."""
    windowed = bool(shape.windowed_layers) and s.seq >= shape.window > 0
    if s.attn != "sdpa" or not (s.packed or s.padded or s.masked or s.prefix or windowed):
        return 0
    return 2 if (s.padded or s.masked) and shape.windowed_layers else 1


def _key_heads(shape: ModelShape) -> int:
    """Heads of keys as the code holds them: the newer Falcon copies each to all of its queries."""
    return shape.heads if shape.model_type == "falcon" and shape.norms > 1 else shape.kv_heads


def _projections(
    tape: Tape, s: Settings, shape: ModelShape, x: Tensor, matrices: dict[str, Linear]
) -> tuple[Tensor, Tensor, Tensor]:
    queries = s.tokens * shape.heads * shape.head_dim // s.tp
    keys = s.tokens * max(1, _key_heads(shape) // s.tp) * shape.head_dim
    if shape.fused_qkv:
        whole = linear(tape, s, x, matrices["qkv"])
        query, key = (tape.op(n, whole.width, (whole,)) for n in (queries, keys))  # reshaped, rotated copies
        scratch = 3 * (query.size + key.size) if shape.rope and not shape.alibi else 0
        tape.touch(scratch)
        if shape.model_type in ("falcon", "bloom"):
            value = tape.op(keys, whole.width, (whole,))
            tape.drop(whole)
            return query, key, value
        return query, key, whole
    three = (matrices["q"], matrices["k"], matrices["v"])
    if fused(s, three):
        query, key, value = fused_linears(tape, s, x, three)
    else:
        query, key, value = (linear(tape, s, x, matrix) for matrix in three)
    query = _scaled(tape, shape, query)
    if shape.qk_norm:
        query = _head_norm(tape, s, shape, query)
        key = _head_norm(tape, s, shape, key)
    if shape.rope and not shape.alibi:
        query, key = _rotated(tape, s, shape, query, key)
    return query, key, value


def _scaled(tape: Tape, shape: ModelShape, query: Tensor) -> Tensor:
    """OPT multiplies the query by a constant, which makes another tensor."""
    if shape.model_type != "opt":
        return query
    scaled = tape.op(query.numel, query.width, (query,))
    tape.drop(query)
    return scaled


def _head_norm(tape: Tape, s: Settings, shape: ModelShape, x: Tensor) -> Tensor:
    width = shape.head_dim if shape.qk_norm == "head" else shape.hidden
    out = norm(tape, s, x, shape.norm, width)
    tape.drop(x)
    return out


def _rotated(tape: Tape, s: Settings, shape: ModelShape, *both: Tensor) -> tuple[Tensor, ...]:
    """Query and key after the rotary embedding; the plain ones go once both are done."""
    if s.liger:
        return both  # Liger's kernel rotates in place
    results = tuple(_rotate(tape, s, shape, x) for x in both)
    tape.drop(*both)
    return results


def _rotate(tape: Tape, s: Settings, shape: ModelShape, x: Tensor) -> Tensor:
    """`x * cos + rotate_half(x) * sin`: three tensors on the way, none of them saved."""
    width = max(x.width, s.stream)
    part = int(x.numel * shape.rotary_share)
    out = turned(tape, x, part, width)
    if shape.rotary_share < 1:
        tape.touch(part * width)
    return out


def turned(tape: Tape, x: Tensor, part: int, width: int) -> Tensor:
    """`part` elements of a query or key turned by their positions, in that width; the caller keeps `x`."""
    cosine = tape.new(part, width)
    half = tape.new(part // 2, x.width)
    other = tape.new(part, x.width)
    tape.drop(half)
    sine = tape.new(part, width)
    tape.drop(other)
    out = tape.op(x.numel, width, (x,), (), temporary=(part * width, part * width))
    tape.drop(cosine, sine)
    return out


def _lowered(tape: Tape, s: Settings, x: Tensor) -> Tensor:
    """Autocast casts what enters an attention kernel or a product."""
    if not s.autocast or x.width == s.compute:
        return x
    out = tape.op(x.numel, s.compute, (x,))
    tape.drop(x)
    return out


def _latent_projections(
    tape: Tape,
    s: Settings,
    shape: ModelShape,
    latent: LatentAttention,
    x: Tensor,
    matrices: dict[str, Linear],
) -> tuple[Tensor, Tensor, Tensor]:
    tokens, heads = s.tokens, shape.heads // s.tp
    width = latent.plain_width + latent.rope_width
    if latent.query_rank:
        low = linear(tape, s, x, matrices["q_a"])
        normed = norm(tape, s, low, shape.norm, latent.query_rank)
        whole = linear(tape, s, normed, matrices["q_b"])
        tape.drop(low, normed)
    else:
        whole = linear(tape, s, x, matrices["q"])
    packed = linear(tape, s, x, matrices["kv_a"])
    low = tape.op(tokens * latent.rank, packed.width, (packed,))
    normed = norm(tape, s, low, shape.norm, latent.rank)
    opened = linear(tape, s, normed, matrices["kv_b"])
    tape.drop(low, normed)
    tape.touch(4 * tokens * heads * latent.rope_width * packed.width)
    query = tape.op(tokens * heads * width, whole.width, (whole,))
    key = tape.op(tokens * heads * width, opened.width, (opened, packed))
    tape.drop(whole, packed)
    return query, key, opened  # the value is a view of the opened tensor


def _flash(tape: Tape, s: Settings, shape: ModelShape, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    heads = shape.heads // s.tp
    width = shape.latent.value_width if shape.latent else shape.head_dim
    sums = tape.new(s.tokens * heads, 4)
    context = s.tokens * heads * width
    repeated = 2 * q.size if k.numel < q.numel and not shape.fused_qkv else 0
    gathered = (2 * s.cp * (k.size + v.size),) if s.cp > 1 else ()
    scratch = (4 * q.numel + 4 * s.tokens * heads + repeated, *gathered)
    out = tape.op(context, q.width, (q, k, v), (q, k, v, sums), temporary=scratch)
    # the kernel saves its own result as well
    tape.save_result(out)
    tape.drop(sums)
    return out


def _has_math_only(s: Settings, shape: ModelShape, q: Tensor) -> bool:
    """torch's flash kernel takes no fp32 and no heads wider than it knows."""
    return s.attn != "flash_attention_2" and (q.width == 4 or shape.head_dim > FLASH_HEAD_DIM)


def _masked(
    tape: Tape, s: Settings, shape: ModelShape, q: Tensor, k: Tensor, v: Tensor, mask: bool
) -> Tensor:
    """With a mask torch takes the memory-efficient kernel: keys repeated, the mask made additive."""
    if not mask and q.width == 4 and k.numel < q.numel:
        return _math(tape, s, shape, q, k, v)
    key = _repeated(tape, s, q, k)
    value = _repeated(tape, s, q, v)
    bias = tape.new(s.batch * s.seq * (s.seq + s.prefix), s.compute) if mask else tape.new(0, 1)
    sums = tape.new(s.tokens * shape.heads // s.tp, 4)
    out = tape.op(q.numel, q.width, (q, key, value), (q, key, value, bias, sums), temporary=2 * q.size)
    tape.save_result(out)
    tape.drop(key, value, bias, sums)
    return out


def _repeated(tape: Tape, s: Settings, q: Tensor, k: Tensor) -> Tensor:
    numel = q.numel // s.seq * (s.seq + s.prefix)
    if k.numel >= numel:
        k.refs += 1
        return k
    return tape.op(numel, k.width, (k,), temporary=0)


def _scores(s: Settings, shape: ModelShape) -> int:
    return s.batch * (shape.heads // s.tp) * s.seq * (s.seq + s.prefix)


def _eager(tape: Tape, s: Settings, shape: ModelShape, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores in full: product, scale, mask, fp32 softmax, cast, product."""
    key, value = _repeated(tape, s, q, k), _repeated(tape, s, q, v)
    n = _scores(s, shape)
    raw = tape.op(n, q.width, (q, key), (q, key))
    scaled = raw
    if shape.model_type not in ("bloom", "opt"):
        scaled = tape.op(n, q.width, (raw,))
        tape.drop(raw)
    masked = tape.op(n, q.width, (scaled,), through=True)
    tape.drop(scaled)
    if masked.width != 4:  # softmax in fp32 of bf16 scores casts them first
        full = tape.op(n, 4, (masked,))
        tape.drop(masked)
        masked = full
    soft = tape.op(n, 4, (masked,), (), temporary=4 * n)
    tape.save_result(soft)
    tape.drop(masked)
    weights = soft
    if q.width != 4:
        weights = tape.op(n, q.width, (soft,))
        tape.drop(soft)
    if shape.attention_dropout > 0:
        mask = tape.new(n, 1)
        dropped = tape.op(n, q.width, (weights,), (mask,))
        tape.drop(weights, mask)
        weights = dropped
    context = tape.op(q.numel, q.width, (weights, value), (weights, value))
    tape.drop(key, value)
    out = tape.op(q.numel, q.width, (context,))
    tape.drop(context, weights)
    return out


def _math(tape: Tape, s: Settings, shape: ModelShape, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """torch's own composition in fp32: scaled copies, a causal mask added, softmax, product."""
    n = _scores(s, shape)
    wide = [_widened(tape, _scaled_copy(tape, t)) for t in (q, k)]
    key = _repeated_name(tape, s, wide[0], wide[1])
    value = _repeated_name(tape, s, wide[0], _widened(tape, _scaled_copy(tape, v)))
    raw = tape.op(n, 4, (wide[0], key), (wide[0], key))
    masked = tape.op(n, 4, (raw,), through=True)
    tape.drop(raw)
    soft = tape.op(n, 4, (masked,), (), temporary=4 * n)
    tape.save_result(soft)
    tape.drop(masked)
    out = tape.op(q.numel, 4, (soft, value), (soft, value))
    tape.drop(soft, key, value, wide[0])
    if q.width == 4:
        return out
    narrow = tape.op(q.numel, q.width, (out,))
    tape.drop(out)
    return narrow


def _scaled_copy(tape: Tape, x: Tensor) -> Tensor:
    return tape.op(x.numel, x.width, (x,))


def _widened(tape: Tape, x: Tensor) -> Tensor:
    if x.width == 4:
        return x
    out = tape.op(x.numel, 4, (x,))
    tape.drop(x)
    return out


def _repeated_name(tape: Tape, s: Settings, q: Tensor, k: Tensor) -> Tensor:
    out = _repeated(tape, s, q, k)
    tape.drop(k)
    return out
