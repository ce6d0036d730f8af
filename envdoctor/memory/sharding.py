"""What a card holds of weights, gradients and optimizer states under DDP, ZeRO and FSDP, and their buffers.

As DeepSpeed 0.19 and torch's fully_shard allocate them: flat copies, partitions of every sub group in fp32
during the step, buckets of fixed size, gathered parameters up to a limit.
"""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.adapters import adapter_tensors, copied_tensors
from envdoctor.memory.layout import HEAD, TABLE, Elements, Layer, layers, learned, outer_tensors, tensors
from envdoctor.memory.optimizer import find_optimizer, state_bytes
from envdoctor.memory.run import DeepSpeed, TrainingRun
from envdoctor.memory.settings import Settings, settings_of
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.stepping import largest_step, step_bytes
from envdoctor.memory.tape import rounded
from envdoctor.memory.weights import layer_bytes, load_peak, weight_bytes
from envdoctor.values import NamedTuple


class Plan(NamedTuple):
    """Bytes on rank 0: what lasts through every step, and what each phase adds to it.

    `share` is the part of a weight gradient that stays once its layer is done; `gradients` is what stays of
    all of them at the end of the backward pass.
    """

    weights: int
    adapters: int
    optimizer: int
    buffers: int
    gradients: int
    share: float
    gathered: int
    bucket: int
    step: int
    load: int
    setup: int
    whole_head: bool = False
    norm: int = 0  # of a copy in fp64 for the norm of the largest gradient
    frozen: int = 0  # of a second model, as loaded, that is never trained
    between: int = 0  # of gradients that lie there from one micro batch to the next
    resharded: int = 0  # of what is gathered, what goes after the forward pass until it is needed
    fused: int = 0  # at the height of stepping one weight outside the layers, where each is stepped at once


class _Parts(NamedTuple):
    """Sizes before sharding: bytes of weights and adapters, elements trained, states and gradients."""

    weights: int
    adapters: int
    trained: tuple[tuple[int, int], ...]
    elements: int
    width: int
    load: int
    frozen: int
    copies: tuple[tuple[int, int], ...]  # trained in a width of their own: what adapters' training copies,
    copied: int  # or what is wider than the matrices


def own_tensors(shape: ModelShape, s: Settings) -> tuple[tuple[int, int], ...]:
    """Elements of each of the model's own tensors that is trained, and how often it occurs."""
    if not s.active:
        return tensors(learned(shape), s.tower_trains)
    found = tuple((n, 1) for n in outer_tensors(learned(shape), False)) if s.outer else ()
    left = s.lasting
    for layer, count in reversed(layers(shape)):
        taken, left = min(left, count), max(0, left - count)
        found += tuple((n, taken) for n in layer.tensors()) if taken else ()
    return found


@lru_cache(maxsize=4096)
def _parts(shape: ModelShape, s: Settings, double: bool, adapter_width: int) -> _Parts:
    weights = weight_bytes(shape, s, double)
    trained = own_tensors(shape, s) if s.trains else adapter_tensors(shape, s)
    copies = copied_tensors(shape, s)
    if s.layered:
        weights += sum((s.layered - s.weight) * n * count for n, count in trained)
    if s.trains and s.outer and s.vector != s.weight:
        copies = tuple((n, 1) for n in outer_tensors(learned(shape), s.tower_trains))
        copies += tuple((n, count) for layer, count in layers(shape) for n in layer.vectors)
        trained = tuple((n, count) for layer, count in layers(shape) for n in layer.matrices())
    width = (s.layered or s.weight) if s.trains else adapter_width
    adapters = 0 if s.trains else sum(count * rounded(width * n) for n, count in trained)
    adapters += 0 if s.trains else sum(rounded(s.copied * n) for n, _ in copies)
    elements = sum(n * count for n, count in (*trained, *copies)) // s.tp
    wide = s.vector if s.weight == s.loaded else s.loaded  # what a loader widens beside the matrices
    frozen = weight_bytes(shape, s._replace(weight=s.loaded, vector=wide), double) if s.trains else 0
    load, copied = load_peak(shape, s, weights), s.vector if s.trains else s.copied
    return _Parts(weights, adapters, trained, elements, width, load, frozen, copies, copied)


def plan_of(run: TrainingRun, known: Settings | None = None) -> Plan:
    """Return what the run's cards hold; its settings may be known."""
    s = known or settings_of(run)
    key = (run.shape, s, run.double_quant, run.optim, run.pp, run.replicas)
    if run.trains.layers == "first":
        return _blockwise(run, s)
    if run.parallel.startswith("zero"):
        stage = int(run.parallel[-1])
        return _zero(*key, stage, run.deepspeed, run.offload_optimizer, run.offload_params)
    if run.parallel == "fsdp":
        return _fsdp(*key, run.adapter_fp32, run.offload_params, run.meta_load, run.fsdp_version)
    return _replicated(*key, run.parallel == "ddp", run.optim_rank)


@lru_cache(maxsize=4096)
def _replicated(
    shape: ModelShape, s: Settings, double: bool, optim: str, pp: int, replicas: int, ddp: bool, rank: int
) -> Plan:
    parts = _parts(shape, s, double, s.adapter)
    optimizer = find_optimizer(optim)
    embedding = shape.vocab * shape.hidden if s.trains_table else 0
    gradients = states = bucket = fused = 0
    groups = (parts.copies, parts.copied), (parts.trained, parts.width)
    step = step_bytes(optimizer, groups, rank) // (s.tp * pp)
    for trained, width in groups:
        drawn = trained is parts.trained and s.lasting > s.active > 0
        now = own_tensors(shape, s._replace(lasting=s.active)) if drawn else trained
        gradients += sum(count * rounded(width * n // s.tp) for n, count in now) // pp
        states += state_bytes(optimizer, trained, width, embedding, rank) // (s.tp * pp)
        if optimizer.layerwise:
            tables = {n for n, _ in trained if isinstance(n, Elements) and n.role in (TABLE, HEAD)}
            fused = max(fused, largest_step(optimizer, tables, width, rank))
            inner = {n for n, _ in trained} - tables
            bucket = max(bucket, largest_step(optimizer, inner, width, rank))
    if optimizer.layerwise:
        return Plan(
            weights=parts.weights // pp, adapters=parts.adapters // pp, optimizer=states, buffers=0,
            gradients=0, share=0.0, gathered=0, bucket=bucket, step=0, load=parts.load // pp, setup=0,
            whole_head=shape.tied, frozen=parts.frozen // pp, fused=fused or 1,
        )  # fmt: skip
    return Plan(
        weights=parts.weights // pp,
        adapters=parts.adapters // pp,
        optimizer=states,
        buffers=gradients if ddp else 0,  # DDP's buckets are copies of all gradients
        gradients=gradients,
        share=1.0,
        gathered=0,
        bucket=0,
        step=step,
        load=parts.load // pp,
        setup=0,
        frozen=parts.frozen // pp,
        between=gradients,
    )


@lru_cache(maxsize=4096)
def _zero(
    shape: ModelShape,
    s: Settings,
    double: bool,
    optim: str,
    pp: int,
    replicas: int,
    stage: int,
    sizes: DeepSpeed,
    offload_optimizer: bool,
    offload_params: bool,
) -> Plan:
    parts = _parts(shape, s, double, s.adapter)
    states = find_optimizer(optim).states
    elements = -(-parts.elements // (replicas * pp))  # of this rank's partition
    kept = 0 if offload_optimizer else 4 * (1 + states) * elements
    if stage < 3:
        buckets = 2 * sizes.reduce_bucket * (2 if sizes.overlap_comm else 1)
        buckets = min(buckets, 4 * parts.elements) if not sizes.contiguous_gradients else buckets
        gradients = 0 if offload_optimizer else 2 * elements
        # the norm of what this rank keeps is taken in fp64, one tensor after the other, before the step
        largest = max((n for n, _ in (*parts.trained, *parts.copies)), default=0)
        norm = rounded(8 * min(largest, elements))
        step = 0 if offload_optimizer else max(2 * elements + 4 * elements, norm)
        if not offload_optimizer:  # which has temp_grad_buffer_for_gpu_offload
            largest = norm = 0
        return Plan(
            parts.weights // pp, parts.adapters // pp, kept, rounded(2 * largest), gradients,
            0.0 if offload_optimizer else 1 / replicas, 0, buckets, step, parts.load // pp, 0, shape.tied,
            norm, parts.frozen // pp, gradients,
        )  # fmt: skip
    weights = 0 if offload_params else parts.weights // (replicas * pp)
    whole = (parts.weights // s.weight) // pp
    live = min(whole, max(sizes.max_live, _largest(shape) + sizes.prefetch_bucket))
    group = min(sizes.sub_group, elements)
    second = parts.weights // (sizes.secondary * pp) if sizes.secondary > 1 else 0
    return Plan(
        weights=weights,
        adapters=parts.adapters // (replicas * pp),
        optimizer=kept,
        buffers=2 * sizes.reduce_bucket + second + (0 if offload_optimizer else 2 * elements),
        gradients=0,
        share=0.0,
        gathered=live * s.weight,
        bucket=0,
        step=0 if offload_optimizer else 6 * group,
        load=weights + _largest(shape) * s.weight,
        setup=0,
        whole_head=shape.tied,
        frozen=parts.frozen // (replicas * pp),
    )


def _blockwise(run: TrainingRun, s: Settings) -> Plan:
    """BAdam: copies in fp32 of the layer at hand, and their states; gradients are widened for the step."""
    plain = _replicated(run.shape, s, run.double_quant, run.optim, 1, 1, False, 0)
    parts = _parts(run.shape, s, run.double_quant, s.adapter)
    optimizer = find_optimizer(run.optim)
    wide = sum(count * rounded(4 * n) for n, count in parts.trained)
    last = max(rounded(s.weight * n) for n, _ in parts.trained)
    stepped = wide + max(last, step_bytes(optimizer, ((parts.trained, 4),)))
    return plain._replace(
        optimizer=wide + state_bytes(optimizer, parts.trained, 4), step=max(0, stepped - plain.gradients)
    )


def host_bytes(weights: int, trained: int, offload_optimizer: bool, offload_params: bool) -> int:
    """Bytes of host memory over all ranks, of so many parameters in all and trained.

    DeepSpeed steps there with weights, both states and gradients in fp32; offloaded weights are of 16 bits.
    """
    return (16 * trained if offload_optimizer else 0) + (2 * weights if offload_params else 0)


def _largest(shape: ModelShape) -> int:
    """Elements of the largest single parameter."""
    return max(n for n, _ in tensors(shape))


@lru_cache(maxsize=4096)
def _fsdp(
    shape: ModelShape,
    s: Settings,
    double: bool,
    optim: str,
    pp: int,
    replicas: int,
    adapter_fp32: bool,
    offload: bool,
    meta: bool,
    version: int,
) -> Plan:
    """fully_shard over each layer and the root: accelerate keeps trained shards in fp32.

    Trainers reduce gradients in the last micro batch of a step alone (`no_sync`): until then every card keeps
    all of them whole. The first version holds an offloaded unit's shard beside the whole.
    """
    parts = _parts(shape, s, double, 4 if adapter_fp32 else s.weight)
    states = find_optimizer(optim).states
    elements = -(-parts.elements // (replicas * pp))
    whole = parts.weights * s.loaded // (s.weight * pp) if not s.quant else parts.weights // pp
    shard = 0 if offload else -(-whole // replicas)
    weights = 4 * elements if s.trains else shard
    largest = max(_gathered(layer, s, double) for layer, _ in layers(shape))
    root = sum(outer_tensors(shape)) * s.weight // s.tp
    return Plan(
        weights=0 if offload else weights,
        adapters=0 if s.trains or offload else 4 * elements,
        optimizer=0 if offload else 4 * states * elements,
        buffers=0,
        gradients=0 if offload else 4 * elements,
        share=0.0 if offload else 4 / s.weight / replicas,
        gathered=root,
        bucket=2 * largest + (largest // replicas if offload and version < 2 else 0),
        step=0,
        load=(shard + 2 * largest if meta else whole) + parts.adapters,
        setup=_wrapped(
            parts, s, whole, shard, elements, replicas, pp, offload, _largest(shape) if meta else 0
        ),
        whole_head=True,
        frozen=parts.frozen // (replicas * pp),
        between=(s.weight if s.trains else s.adapter) * parts.elements // pp,
        resharded=_resharded(shape, s, root),
    )


def _gathered(layer: Layer, s: Settings, double: bool) -> int:
    """Bytes of a layer while it is whole: quantised weights travel as they are stored."""
    return layer_bytes(layer, s, double) if s.quant else sum(layer.tensors()) * s.weight // s.tp


def _resharded(shape: ModelShape, s: Settings, root: int) -> int:
    """Bytes of a gathered root that go after the forward pass: of a trained one an untied head alone.

    A tied table waits for the gradient of ids, which never comes.
    """
    if shape.tied:
        return 0
    return shape.vocab * shape.hidden * s.weight // s.tp if s.trains else root


def _wrapped(
    parts: _Parts,
    s: Settings,
    whole: int,
    shard: int,
    elements: int,
    replicas: int,
    pp: int,
    offload: bool,
    single: int,
) -> int:
    """Bytes while accelerate wraps: all weights (trained ones in fp32) beside the shards cut from them.

    Loaded on the meta device, only the tensor that is being filled is whole, of at most `single` elements.
    """
    if single:
        one = single * (4 if s.trains else s.loaded)
        if offload:
            return one + one // replicas
        return (4 * elements if s.trains else shard + parts.adapters // replicas) + one
    if s.trains:
        return 4 * parts.elements // pp + (0 if offload else 4 * elements)
    return whole + parts.adapters + (0 if offload else shard + parts.adapters // replicas)
