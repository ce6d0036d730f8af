"""What the layers keep between forward and backward, and how high each direction reaches above that."""

from __future__ import annotations

from functools import lru_cache

from envdoctor.memory.run import TrainingRun
from envdoctor.memory.settings import Settings
from envdoctor.memory.shape import ModelShape
from envdoctor.memory.tape import Tape, rounded
from envdoctor.memory.towers import run_layer
from envdoctor.memory.vision import Vision
from envdoctor.values import NamedTuple


class LayerCost(NamedTuple):
    """A layer's bytes: kept until its backward pass, kept until the forward pass ends, and the heights
    that its forward and its backward pass reach above what is live when they begin; `grads` remain."""

    kept: int
    cached: int
    forward: int
    backward: int
    grads: int


@lru_cache(maxsize=4096)
def layer_cost(
    shape: ModelShape | Vision, s: Settings, checkpoint: bool, moe: bool, windowed: bool, accumulating: bool
) -> LayerCost:
    """Return the cost of one layer of that kind."""
    stream = rounded(s.tokens * shape.hidden * s.stream)
    tape = Tape(keep=not checkpoint, accumulating=accumulating)
    x = tape.new(s.tokens * shape.hidden, s.stream, needs=True)
    if checkpoint:
        x.refs += 1
    out = run_layer(tape, s, shape, x, moe, windowed)
    forward = tape.peak - stream
    after = tape.live
    cached = tape.cached if checkpoint else 0
    kept = after - stream - cached
    if checkpoint:
        tape = Tape(accumulating=accumulating)
        x = tape.new(s.tokens * shape.hidden, s.stream, needs=True)
        x.refs += 1
        before = tape.live
        tape.live += stream  # the gradient that arrives
        if s.dora:  # and what it becomes before anything that was saved is asked for
            tape.live += 2 * rounded(s.tokens * shape.hidden * s.adapter)
        out = run_layer(tape, s, shape, x, moe, windowed)
        if not s.reentrant:
            tape.peak = tape.reached
    else:
        before = tape.live - stream
        tape.peak = 0
        tape.live += stream
    tape.drop(out)
    tape.backward(out)
    return LayerCost(kept, cached, forward, tape.peak - before, tape.grads)


IDLE, PASSED = "idle", "passed"
"""Layers that no gradient reaches, and frozen ones that one passes."""


class LayerKind(NamedTuple):
    """How many layers of a kind there are, whether they hold experts or a window, and what part they have
    where some layers alone are trained."""

    number: int
    moe: bool
    windowed: bool
    role: str = ""


def kinds_of(run: TrainingRun) -> tuple[LayerKind, ...]:
    """The kinds of a run's layers in order: which are idle, trained, and passed by a gradient."""
    kinds = layer_kinds(run.shape, run.pp)
    layers = run.trains.layers
    if layers in ("", "all"):
        return kinds
    active, idle = run.active_layers, 0
    if layers == "last":
        idle = run.shape.layers - active
    found: list[LayerKind] = []
    for kind in kinds:
        left = kind.number
        for role in (IDLE, "", PASSED):
            room = {IDLE: idle, "": active, PASSED: left}[role]
            taken = min(left, room)
            left -= taken
            idle -= taken if role == IDLE else 0
            active -= taken if role == "" else 0
            if taken:
                found.append(kind._replace(number=taken, role=role))
    return tuple(found)


def cost_of(
    shape: ModelShape | Vision, s: Settings, checkpoint: bool, kind: LayerKind, accumulating: bool
) -> LayerCost:
    """Return the cost of one layer of a kind that is told."""
    if kind.role == IDLE:
        tape = Tape(keep=False)
        x = tape.new(s.tokens * shape.hidden, s.stream)
        before = tape.live
        run_layer(tape, s.of_layer(IDLE), shape, x, kind.moe, kind.windowed)
        # a checkpoint holds its input all the same: it stands in a circle of references with it
        kept = before if checkpoint and not s.reentrant else 0
        return LayerCost(kept, 0, tape.peak - before + kept, 0, 0)
    own = s.of_layer(kind.role)
    return layer_cost(shape, own, checkpoint, kind.moe, kind.windowed, accumulating)


@lru_cache(maxsize=256)
def layer_kinds(shape: ModelShape, pp: int = 1) -> tuple[LayerKind, ...]:
    """The kinds of layers of the largest pipeline stage."""
    total = -(-shape.layers // pp)
    moe = round(total * shape.moe_layers / shape.layers)
    windowed = round(total * shape.windowed_layers / shape.layers)
    if moe:
        return tuple(LayerKind(n, m, windowed > 0) for n, m in ((total - moe, False), (moe, True)) if n)
    return tuple(LayerKind(n, False, w) for n, w in ((total - windowed, False), (windowed, True)) if n)
