"""Which matrices and vectors a model is built of: the inventory that weights, gradients and shards share."""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.shape import Experts, LatentAttention, ModelShape
from envdoctor.memory.vision import Vision
from envdoctor.values import NamedTuple, replace

NAMES_ATTENTION = frozenset({"q", "k", "v", "o", "qkv"})


class Elements(int):
    """How many elements a matrix has, its two sides, and what it is: a linear's role, "table" or "head"."""

    rows: int
    columns: int
    role: str

    @classmethod
    def of(cls, rows: int, columns: int, role: str) -> Elements:
        """Return those of a matrix."""
        found = cls(rows * columns)
        found.rows, found.columns, found.role = rows, columns, role
        return found


TABLE, HEAD = "table", "head"


class Linear(NamedTuple):
    """A matrix product: its role, its width in and out, whether it adds a bias, and how many there are."""

    role: str
    inputs: int
    outputs: int
    bias: bool = False
    times: int = 1

    @property
    def weight(self) -> int:
        """Elements of one weight."""
        return self.inputs * self.outputs


class Layer(NamedTuple):
    """A decoder layer's linears, and the elements of each stacked expert tensor and of each vector."""

    linears: tuple[Linear, ...]
    stacks: tuple[int, ...]
    vectors: tuple[int, ...]

    def tensors(self) -> tuple[int, ...]:
        """Elements of every parameter tensor of the layer."""
        return (*self.matrices(), *self.vectors)

    def matrices(self) -> tuple[int, ...]:
        """Elements of those of the linears and of the stacks of experts."""
        found: list[int] = []
        for linear in self.linears:
            found += [Elements.of(linear.outputs, linear.inputs, linear.role)] * linear.times
            if linear.bias:
                found += [linear.outputs] * linear.times
        return (*found, *self.stacks)


@lru_cache(maxsize=256)
def attention_linears(shape: ModelShape) -> tuple[Linear, ...]:
    """The matrices of an attention block, in the order they are used."""
    if shape.latent:
        return _latent_linears(shape, shape.latent)
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    out = Linear("o", queries, shape.hidden, shape.o_bias)
    if shape.fused_qkv:
        return (Linear("qkv", shape.hidden, queries + 2 * keys, shape.qkv_bias), out)
    return (
        Linear("q", shape.hidden, queries, shape.qkv_bias),
        Linear("k", shape.hidden, keys, shape.qkv_bias),
        Linear("v", shape.hidden, keys, shape.qkv_bias),
        out,
    )


def _latent_linears(shape: ModelShape, latent: LatentAttention) -> tuple[Linear, ...]:
    width = latent.plain_width + latent.rope_width
    queries = (
        (
            Linear("q_a", shape.hidden, latent.query_rank),
            Linear("q_b", latent.query_rank, shape.heads * width),
        )
        if latent.query_rank
        else (Linear("q", shape.hidden, shape.heads * width),)
    )
    return (
        *queries,
        Linear("kv_a", shape.hidden, latent.rank + latent.rope_width),
        Linear("kv_b", latent.rank, shape.heads * (latent.plain_width + latent.value_width)),
        Linear("o", shape.heads * latent.value_width, shape.hidden),
    )


def mlp_linears(shape: ModelShape, width: int, prefix: str = "") -> tuple[Linear, ...]:
    """The matrices of a feed-forward block of that width."""
    if shape.fused_gate_up:
        first: tuple[Linear, ...] = (Linear(prefix + "gate_up", shape.hidden, 2 * width, shape.mlp_bias),)
    elif shape.gated:
        first = (
            Linear(prefix + "gate", shape.hidden, width, shape.mlp_bias),
            Linear(prefix + "up", shape.hidden, width, shape.mlp_bias),
        )
    else:
        first = (Linear(prefix + "up", shape.hidden, width, shape.mlp_bias),)
    return (*first, Linear(prefix + "down", width, shape.hidden, shape.mlp_bias))


def _expert_stacks(shape: ModelShape, experts: Experts) -> tuple[int, ...]:
    biases = (experts.count * 2 * experts.width, experts.count * shape.hidden, experts.count)
    return (
        2 * experts.count * shape.hidden * experts.width,
        experts.count * shape.hidden * experts.width,
        experts.count * shape.hidden,
        *(biases if shape.expert_bias else ()),
    )


@lru_cache(maxsize=256)
def dense_layer(shape: ModelShape) -> Layer:
    """A layer with a plain feed-forward block."""
    return Layer((*attention_linears(shape), *mlp_linears(shape, shape.ffn)), (), _vectors(shape))


@lru_cache(maxsize=256)
def moe_layer(shape: ModelShape) -> Layer:
    """A layer of experts: transformers keeps them as two stacked tensors and a router."""
    experts = shape.experts
    assert experts is not None
    linears = attention_linears(shape)
    if experts.shared_width:
        linears += mlp_linears(shape, experts.shared_width, "shared_")
    return Layer(linears, _expert_stacks(shape, experts), _vectors(shape))


def _vectors(shape: ModelShape) -> tuple[int, ...]:
    widths = [shape.hidden] * (shape.norms if shape.pre_norm else 0)
    widths += [shape.hidden] * (2 if shape.post_norms else 0)
    if shape.qk_norm == "head":
        widths += [shape.head_dim] * 2
    elif shape.qk_norm == "full":
        widths += [shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim]
    if shape.latent:
        widths += [r for r in (shape.latent.query_rank, shape.latent.rank) if r]
    if shape.norm == "layer-plain":
        return ()
    return tuple(w for w in widths for _ in range(2 if shape.norm == "layer" else 1))


@lru_cache(maxsize=256)
def outer_tensors(shape: ModelShape, tower: bool = True) -> tuple[int, ...]:
    """Elements of the parameters outside the layers: embedding first, then positions, norms, head, tower."""
    found: list[int] = [Elements.of(shape.vocab, shape.hidden, TABLE)]
    if shape.learned_positions:
        found.append(Elements.of(shape.learned_positions, shape.hidden, TABLE))
    if shape.embedding_norm:
        found += [shape.hidden] * 2
    if shape.norm != "layer-plain":
        found += [shape.hidden] * (2 if shape.norm == "layer" else 1)
    if shape.classes:
        found.append(Elements.of(shape.classes, shape.hidden, HEAD))
    elif not shape.tied:
        found.append(Elements.of(shape.vocab, shape.hidden, HEAD))
    if shape.head_bias:
        found.append(shape.vocab)
    return (*found, *tower_tensors(shape)) if tower else tuple(found)


def learned(shape: ModelShape) -> ModelShape:
    """Return the shape whose tensors full training steps: without a head that no loss asks for."""
    return replace(shape, tied=True) if shape.idle_head else shape


def block_linears(v: Vision) -> tuple[Linear, ...]:
    """A block's matrices, by the names that its code gives them, in the order they are used."""
    first = (
        (Linear("qkv", v.hidden, 3 * v.hidden, v.bias),)
        if v.fused
        else tuple(Linear(name, v.hidden, v.hidden, v.bias) for name in ("q", "k", "v"))
    )
    last = "proj" if v.fused else "o" if v.masked else "out"
    if v.gated:
        inner = tuple(Linear(name, v.hidden, v.ffn, v.bias) for name in ("gate", "up"))
        outer = Linear("down", v.ffn, v.hidden, v.bias)
    else:
        inner, outer = (Linear("fc1", v.hidden, v.ffn, v.bias),), Linear("fc2", v.ffn, v.hidden, v.bias)
    return (*first, Linear(last, v.hidden, v.hidden, v.bias), *inner, outer)


def ending_linears(v: Vision) -> tuple[Linear, ...]:
    """The matrices that lead from the last block to the decoder; each layer that is tapped has its own."""
    joined = v.hidden * v.merge**2
    two = (Linear("linear_1", v.hidden, v.outputs, True), Linear("linear_2", v.outputs, v.outputs, True))
    ways = {
        "merger": (Linear("merger_1", joined, joined, True), Linear("merger_2", joined, v.outputs, True)),
        "pooled": (),
        "one": (Linear("linear", v.hidden, v.outputs, True),),
        "two": two,
        "shuffled": (Linear("modality", joined, v.outputs),),
        "shuffled-two": (Linear("linear_1", joined, v.outputs, True), two[1]),
        "merged-two": (Linear("merging", joined, v.hidden), *two),
    }
    return ways[v.ending]


def block_vectors(v: Vision) -> tuple[int, ...]:
    """Elements of a block's norms and scales."""
    each = 2 if v.norm == "layer" else 1
    return (v.hidden,) * (2 * each + (2 if v.scaled else 0))


def tower_tensors(shape: ModelShape) -> tuple[int, ...]:
    """Elements of the parameters of towers: by block where the tower is known, the rest as one."""
    if shape.vision is None:
        return (shape.tower,) if shape.tower else ()
    v = shape.vision
    block = Layer(block_linears(v), (), block_vectors(v)).tensors()
    ending = Layer(ending_linears(v) * (1 + v.tapped), (), ()).tensors()
    found = (*block * v.layers, *ending)
    rest = shape.tower - sum(found)
    return (*found, rest) if rest > 0 else found


def roles(shape: ModelShape) -> frozenset[str]:
    """What the linears that an adapter can sit on are called, without the ending `_proj`."""
    found = {linear.role for layer, _ in layers(shape) for linear in layer.linears}
    return frozenset(found | ({"experts"} if shape.experts else set()))


def layers(shape: ModelShape) -> tuple[tuple[Layer, int], ...]:
    """Each kind of layer and how many there are."""
    moe = shape.moe_layers
    kinds = [(dense_layer(shape), shape.layers - moe)] if shape.layers > moe else []
    return (*kinds, (moe_layer(shape), moe)) if moe else tuple(kinds)


@lru_cache(maxsize=256)
def tensors(shape: ModelShape, tower: bool = True) -> tuple[tuple[int, int], ...]:
    """Elements of each parameter tensor and how often it occurs, with the model's tower or without."""
    found = [(n, 1) for n in outer_tensors(shape, tower)]
    for layer, count in layers(shape):
        found += [(n, count) for n in layer.tensors()]
    return tuple(found)


@lru_cache(maxsize=256)
def parameters(shape: ModelShape) -> int:
    """How many parameters the model has (tied ones once)."""
    return sum(n * count for n, count in tensors(shape))


@lru_cache(maxsize=256)
def active_parameters(shape: ModelShape) -> int:
    """How many parameters one token passes through."""
    if shape.experts is None:
        return parameters(shape)
    idle = shape.experts.count - shape.experts.active
    return parameters(shape) - shape.moe_layers * idle * 3 * shape.hidden * shape.experts.width
