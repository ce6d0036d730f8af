"""What images cost in a training step: pixels, the tower's passes, and what the decoder holds of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from envdoctor.memory.activations import LayerCost, layer_cost
from envdoctor.memory.adapters import in_towers, tower_linears
from envdoctor.memory.run import TrainingRun
from envdoctor.memory.settings import Settings, settings_of
from envdoctor.memory.tape import Tape, Tensor, rounded
from envdoctor.memory.towers import tower_ending
from envdoctor.memory.vision import Vision
from envdoctor.values import NamedTuple


class ImageCost(NamedTuple):
    """Bytes: of the batch's pixels, and of the tower above them.

    `kept` lies from the tower's forward pass to its backward pass, `held` (features, the last block's result)
    until the decoder's forward pass ends; `forward` and `backward` are the heights of the tower's passes,
    `grads` its trained weights' gradients, `block` the height of a block's recomputation.
    """

    pixels: int = 0
    kept: int = 0
    held: int = 0
    forward: int = 0
    backward: int = 0
    grads: int = 0
    block: int = 0


NONE = ImageCost()


class Tower(NamedTuple):
    """A run's tower with its settings, whether autograd follows it, and whether its input is `asked` to."""

    vision: Vision
    settings: Settings
    graph: bool
    asked: bool
    images: int
    tokens: int
    pixels: int  # elements


def tower_of(run: TrainingRun) -> Tower | None:
    """Return the tower of a run on images, or None."""
    v = run.shape.vision
    if v is None or not run.images:
        return None
    s = settings_of(run)
    images = run.texts * run.images
    height, width = v.sides(run.pixels)
    patches = v.patches(height, width)
    own = s._replace(
        batch=1, seq=images * patches, trains=s.trains and not run.frozen_tower, targets=in_towers(s.targets),
        rank=s.rank if tower_linears(run.shape, s) else 0, dora=False, keeps_inputs=False,
        liger=False, fused_norm=False, packed=False, masked=False,
        stream=4 if v.widens and s.autocast else s.compute if v.rope and s.autocast else s.vector,
    )  # fmt: skip
    # what asks inputs for gradients under a checkpoint finds the embedding of patches as well
    asked = s.rank > 0 and run.grad_ckpt and v.hooked
    return Tower(
        v, own, own.trains or own.rank > 0 or asked, asked, images, images * v.tokens(height, width),
        images * 3 * v.frames * height * width,
    )  # fmt: skip


def image_cost(run: TrainingRun) -> ImageCost:
    """Return what a run's images cost; nothing without images."""
    tower = tower_of(run)
    return NONE if tower is None else _cost(tower, run.grad_ckpt, run.grad_accum)


@lru_cache(maxsize=1024)
def _cost(tower: Tower, checkpoint: bool, accum: int) -> ImageCost:
    v, s = tower.vision, tower.settings
    block = layer_cost(v, s, checkpoint or not tower.graph, False, False, accum > 1)
    ending = _passing(tower, lambda tape, x: tower_ending(tape, s, v, x, tower.tokens), accum > 1)
    stream = rounded(s.tokens * v.hidden * s.stream)
    narrow = rounded(tower.pixels * s.vector)  # the pixels in the weights' dtype
    beside = sum(rounded(size) for size in shared_blocks(tower))
    used = v.layers - v.unused
    blocks = v.layers * block.kept if tower.graph else v.layers * stream if v.listed else 0
    taps = v.tapped * ending.kept
    leaf = stream if tower.asked else 0  # the patches as they were embedded, and in the end their gradient
    forward = narrow + beside + leaf + stream + max(
        blocks - (block.kept if tower.graph else 0) + block.forward, blocks + ending.forward
    ) + taps  # fmt: skip
    features = rounded(tower.tokens * v.outputs * s.compute)
    held = (1 + v.tapped) * features + (stream if v.tapped else 0)
    kept = 0
    if tower.graph:
        kept = (narrow if s.trains else 0) + beside + leaf + used * block.kept + taps + ending.kept
    grads = used * block.grads + (1 + v.tapped) * ending.grads
    backward = max(
        kept + features + ending.backward, kept - ending.kept + block.backward + ending.grads,
        grads - block.grads + block.backward + narrow + beside + 2 * leaf,
    )  # fmt: skip
    return ImageCost(
        accum * rounded(4 * tower.pixels),
        kept,
        held,
        forward,
        backward if tower.graph else 0,
        grads,
        block.backward if tower.graph else 0,
    )


def entry_blocks(tower: Tower) -> tuple[int, ...]:
    """Bytes of what comes and goes while patches are embedded, and given their places."""
    v, s = tower.vision, tower.settings
    rows = s.tokens * v.hidden
    embedded = (rows * s.compute,)
    # places between those that were learned: four of each, weighed in fp32 and summed
    return (*embedded, 4 * rows * s.vector, 16 * rows, 4 * rows) if v.tapped else embedded


def shared_blocks(tower: Tower) -> tuple[int, ...]:
    """Bytes of what all blocks share: tables of positions in fp32, and a mask that holds images apart."""
    v, s = tower.vision, tower.settings
    tables = (4 * s.tokens * v.head_dim,) * 2 if v.rope else ()
    return (*tables, s.tokens * s.tokens * s.compute) if v.masked else tables


def _passing(tower: Tower, part: Callable[[Tape, Tensor], Tensor], accumulating: bool) -> LayerCost:
    """The cost of a part of the tower that is not checkpointed."""
    v, s = tower.vision, tower.settings
    tape = Tape(keep=tower.graph, accumulating=accumulating)
    x = tape.new(s.tokens * v.hidden, s.stream, needs=tower.graph)
    start = x.size
    out = part(tape, x)
    forward, kept = tape.peak - start, tape.live - start
    before = tape.live
    tape.peak = 0
    tape.drop(out)
    tape.backward(out)
    return LayerCost(max(0, kept), 0, forward, max(0, tape.peak - before), tape.grads)
